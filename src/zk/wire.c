/* The output's memory. */
#include "zk/wire.h"
#include "base/grow.h"

void zk_out_grow(struct zk_out *out, size_t more) {
    out->at = grown(out->at, &out->room, out->used + more, 1);
}

void zk_out_close(struct zk_out *out) {
    free(out->at);
    *out = (struct zk_out){0};
}
