/* The path to a violation, event by event. */
#ifndef CV_LAB_CHECK_PATH_H
#define CV_LAB_CHECK_PATH_H

#include "lab/check/search.h"

/* A path under construction, and the state that it has reached. */
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
/* Finds the steps from the current state: walk->worker.steps. */
void walk_look(struct walk *walk);
/* Goes on by a step from the current state. */
void walk_step(struct walk *walk, const struct step *step);
/* Goes on to a state of the search that is one step away, by a step of that process; -1: of any. */
void walk_on_to(struct walk *walk, uint32_t state, int process);
/* The same for a state whose hash is known. */
void walk_to(struct walk *walk, uint64_t word);
/* In a final state, takes the invisible steps that are left. */
void walk_settle(struct walk *walk);
/* Goes on by a step that violates a property. */
void walk_breaking(struct walk *walk, int property);
/* Returns the path, which the caller owns. */
struct check_path walk_close(struct walk *walk);

/* The shortest path that the search found to a violation of a property. */
struct check_path path_to(struct search *search, int property);
/* Goes to a state of the search by the path on which it was found. */
void walk_to_state(struct walk *walk, const struct search *search, uint32_t state);

#endif
