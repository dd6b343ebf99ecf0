/* What runtimes use of algorithms beside the contract, conclave/algorithm.h. */
#ifndef CV_PROCESS_PROCESS_H
#define CV_PROCESS_PROCESS_H

#include <conclave/algorithm.h>

#include "base/assert.h"

/* The maximum of bytes that the sends of one step take. */
static inline uint32_t cv_out_room(const struct cv_algorithm *code,
                                   const struct cv_layout *layout) {
    uint32_t head = 0, row = 0, sends = layout->sends ? layout->sends : CV_SENDS_DEFAULT;
    for (unsigned i = 0; i < code->message_count; i++) {
        if (code->messages[i].size > head) head = code->messages[i].size;
        if (code->messages[i].row_size > row) row = code->messages[i].row_size;
    }
    return sends * ((uint32_t)sizeof(struct cv_send) + ((head + 7) & ~7u)) +
           2 * ((layout->message_rows * row + 7) & ~7u);
}

static inline void cv_out_reset(struct cv_out *out) {
    out->save = out->tells = out->timers_set = out->timers_cancelled = 0;
    out->choose = out->used = 0;
}

#endif
