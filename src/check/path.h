/* The way to a violation, event by event. */
#ifndef CV_CHECK_PATH_H
#define CV_CHECK_PATH_H

#include "check/search.h"

/* A path under construction, and where in the system it has got to. */
struct walk {
    struct worker worker;
    struct check_path path;
    size_t move_room, flight_room;
    struct open_flight {
        uint32_t message, flight;
    } * open;
    size_t open_count, open_room;
};

/* Begins at the initial state. */
void walk_open(struct walk *walk, struct explorer *explorer);
/* Goes on by a step from the state where it is. */
void walk_step(struct walk *walk, const struct step *step);
/* Goes on to a state that is one step away, by a step of that process; -1: of any. */
void walk_to_by(struct walk *walk, uint64_t pair, int process);
static inline void walk_to(struct walk *walk, uint64_t pair) { walk_to_by(walk, pair, -1); }
/* At an end, has happen what nobody would notice. */
void walk_settle(struct walk *walk);
/* Goes on by a step that breaks a property. */
void walk_breaking(struct walk *walk, int property);
/* Hands over the path. */
struct check_path walk_close(struct walk *walk);

/* The shortest way that the search found to the violation of a property. */
struct check_path path_to(struct search *search, int property);
/* Goes to a state of the search by the way on which it was found. */
void walk_to_state(struct walk *walk, const struct search *search, uint32_t state);

#endif
