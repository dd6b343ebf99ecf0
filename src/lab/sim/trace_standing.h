/* What part a process takes in an election, entry by entry, and the colour of that in pictures. */
#ifndef CV_LAB_SIM_TRACE_STANDING_H
#define CV_LAB_SIM_TRACE_STANDING_H

#include "lab/sim/trace.h"

enum {
    STANDING_NONE,
    STANDING_LEADS,
    STANDING_FOLLOWS,
    STANDING_VALUES, /* from here on: the value of the field that says so, 0 being at rest */
    STANDINGS = STANDING_VALUES + 4,
};
enum { STANDING_NAME_MAX = 48 };

struct standing {
    uint8_t now, value; /* value: as in a trace entry */
    uint8_t role;       /* in which it rests: it leads, or follows, or neither */
    uint32_t round;     /* that it began last */
};

/* Updates the standing of the process of an entry; `of` is by pid. */
void standing_follow(const struct trace *trace, size_t index, struct standing *of);
/* "leads", "active", "phase=asking"; as a legend has it. */
const char *standing_name(const struct trace *trace, uint8_t standing,
                          char buffer[STANDING_NAME_MAX]);
/* Active processes are darker from round to round. */
const char *standing_colour(uint8_t standing, uint32_t round);

#endif
