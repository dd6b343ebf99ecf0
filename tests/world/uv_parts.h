/* What the two halves of libuv share. */
#ifndef WORLD_UV_PARTS_H
#define WORLD_UV_PARTS_H

#include "world.h"

enum { UV_ACTIVE = 1, UV_CLOSING = 2, UV_READING = 4 }; /* flags of a handle */

struct machine *uv_machine(const uv_loop_t *loop);
void uv_begin_handle(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type);

bool uv_tcp_is_ready(const uv_tcp_t *tcp);
void uv_tcp_dispatch(uv_tcp_t *tcp);
void uv_tcp_shut(uv_tcp_t *tcp);   /* its handle is closed */
void uv_tcp_cancel(uv_tcp_t *tcp); /* its requests end with UV_ECANCELED */

#endif
