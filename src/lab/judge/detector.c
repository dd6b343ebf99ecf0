#include "lab/judge/detector.h"

static struct detector_pair *pair_of(struct detector_judge *judge, cv_pid watcher, cv_pid watched) {
    return &judge->pair[(size_t)watcher * (judge->processes + 1) + watched];
}

static bool down(const struct detector_judge *judge, cv_pid p) {
    return judge->crashed_us[p] != UINT64_MAX;
}

void detector_judge_open(struct detector_judge *judge, struct arena *arena, uint32_t processes) {
    size_t n = (size_t)processes + 1;
    *judge = (struct detector_judge){.processes = processes};
    judge->pair = arena_take(arena, n * n * sizeof *judge->pair);
    judge->crashed_us = arena_take(arena, n * sizeof *judge->crashed_us);
    judge->gap_us = arena_take(arena, DETECTOR_GAPS_MAX * sizeof *judge->gap_us);
    for (cv_pid p = 1; p <= processes; p++) judge->crashed_us[p] = UINT64_MAX;
}

void detector_judge_heard(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                          cv_pid watched) {
    struct detector_pair *pair = pair_of(judge, watcher, watched);
    if (pair->heard_us && judge->gap_count < DETECTOR_GAPS_MAX)
        judge->gap_us[judge->gap_count++] = now - pair->heard_us;
    pair->heard_us = now;
}

static void detect(struct detector_judge *judge, uint64_t now, struct detector_pair *pair,
                   cv_pid watched) {
    uint64_t took = now - judge->crashed_us[watched];
    pair->undetected = false;
    judge->crashes_detected++;
    judge->detection_us_sum += took;
    if (took > judge->detection_us_max) judge->detection_us_max = took;
}

static void end_mistake(struct detector_judge *judge, uint64_t now, struct detector_pair *pair) {
    uint64_t lasted = now - pair->suspected_us;
    pair->mistaken = false;
    judge->mistakes_ended++;
    judge->mistake_us_sum += lasted;
    if (lasted > judge->mistake_us_max) judge->mistake_us_max = lasted;
}

void detector_judge_suspects(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                             cv_pid watched) {
    struct detector_pair *pair = pair_of(judge, watcher, watched);
    pair->suspected = true;
    pair->suspected_us = now;
    if (down(judge, watched)) {
        if (pair->undetected) detect(judge, now, pair, watched);
    } else {
        pair->mistaken = true;
        judge->mistakes++;
    }
}

void detector_judge_trusts(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                           cv_pid watched) {
    struct detector_pair *pair = pair_of(judge, watcher, watched);
    pair->suspected = false;
    if (pair->mistaken) end_mistake(judge, now, pair);
}

void detector_judge_crash(struct detector_judge *judge, uint64_t now, cv_pid p) {
    judge->crashed_us[p] = now;
    for (cv_pid q = 1; q <= judge->processes; q++) {
        struct detector_pair *of_p = pair_of(judge, q, p), *by_p = pair_of(judge, p, q);
        if (q == p) continue;
        if (by_p->mistaken) end_mistake(judge, now, by_p);
        *by_p = (struct detector_pair){0}; /* a crashed process watches nobody */
        if (down(judge, q)) continue;
        if (of_p->mistaken) end_mistake(judge, now, of_p); /* the suspicion has become true */
        of_p->undetected = true;
        of_p->heard_us = 0;
        if (of_p->suspected) detect(judge, now, of_p, p);
    }
}

/* A watcher that suspects p until its first heartbeat arrives is late, not mistaken. */
void detector_judge_recover(struct detector_judge *judge, cv_pid p) {
    judge->crashed_us[p] = UINT64_MAX;
    for (cv_pid q = 1; q <= judge->processes; q++) {
        struct detector_pair *pair = pair_of(judge, q, p);
        if (q == p || down(judge, q)) continue;
        judge->missed += pair->undetected;
        pair->undetected = false;
    }
}

void detector_judge_close(struct detector_judge *judge, uint64_t now) {
    for (cv_pid p = 1; p <= judge->processes; p++)
        for (cv_pid q = 1; q <= judge->processes && !down(judge, p); q++) {
            struct detector_pair *pair = pair_of(judge, p, q);
            judge->missed += pair->undetected;
            if (pair->mistaken) end_mistake(judge, now, pair);
        }
}
