/* The ids of members.  In the core, on links and in files of the data directory 0 is nobody.  So
 * the member that people, configurations and clients number 0 has the id 255 there; all others have
 * their number as their id. */
#ifndef CV_BASE_MEMBER_ID_H
#define CV_BASE_MEMBER_ID_H

#include <stdint.h>

/* A session's id begins with its server's number, and 255 there marks the owner of a TTL node. */
enum { MEMBER_NUMBER_MAX = 254, MEMBER_ID_MAX = 255 };

static inline int32_t member_id(int32_t number) { return number == 0 ? MEMBER_ID_MAX : number; }
static inline int32_t member_number(int32_t id) { return id == MEMBER_ID_MAX ? 0 : id; }

#endif
