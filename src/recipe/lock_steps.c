#include "recipe/lock_steps.h"

static uint32_t go(struct lock_steps *l, enum lock_phase phase, uint32_t out) {
    l->phase = phase;
    return out;
}

/* Nothing is left of it. */
static uint32_t end(struct lock_steps *l, uint32_t tell) {
    *l = (struct lock_steps){.kind = l->kind, .slots = l->slots, .mixes = l->mixes};
    return tell;
}

static uint32_t list(struct lock_steps *l) {
    return go(l, LOCK_LISTING, OUT_LIST | (l->unsure ? OUT_SYNC : 0));
}

/* Deletes what there is, now that this is known. */
static uint32_t leave(struct lock_steps *l) {
    l->leaving = true;
    l->holds = l->giving_up = false;
    return go(l, LOCK_LEAVING, OUT_LEAVE);
}

static uint32_t give_up_upgrade(struct lock_steps *l) {
    l->giving_up = true;
    return go(l, LOCK_LEAVING, OUT_LEAVE);
}

static uint32_t rest(struct lock_steps *l, uint32_t tell) {
    l->upgrading = l->giving_up = false;
    return go(l, LOCK_HELD, tell);
}

/* The upgrade is over without success. */
static uint32_t stay_shared(struct lock_steps *l) {
    l->kind = CONTEND_SHARED;
    return rest(l, TELL_HOPELESS);
}

static uint32_t lose(struct lock_steps *l) {
    return (l->has_mark ? leave(l) : end(l, 0)) | TELL_LOST;
}

/* ---- Answers ---- */

static uint32_t on_created(struct lock_steps *l, const struct lock_input *in) {
    if (l->phase != LOCK_JOINING) return 0;
    switch (in->result) {
    case STEP_LOSS: l->unsure = true; break; /* so is the answer to the list */
    case STEP_NO_NODE:
        if (!l->upgrading) return go(l, LOCK_PARENTS, OUT_PARENTS);
        break; /* the lock is gone, and our node: the list will show it */
    case STEP_FAILED:
        if (!l->upgrading) return end(l, TELL_ENDED);
        return l->leaving ? leave(l) : stay_shared(l);
    default:
        if (l->upgrading) {
            l->has_mark = true;
        } else {
            l->has_node = true;
            l->sequence = in->sequence;
        }
    }
    return go(l, LOCK_LISTING, 0);
}

static uint32_t on_prepared(struct lock_steps *l, const struct lock_input *in) {
    if (l->phase != LOCK_PARENTS) return 0;
    if (l->leaving || in->result == STEP_FAILED) return end(l, TELL_ENDED);
    if (in->result == STEP_LOSS) return OUT_PARENTS;
    return go(l, LOCK_JOINING, OUT_JOIN);
}

/* None of the nodes is mine. */
static uint32_t without_node(struct lock_steps *l) {
    if (l->leaving) return l->has_mark ? leave(l) : end(l, TELL_ENDED);
    bool not_created = l->unsure && !l->holds;
    l->unsure = false;
    return not_created ? go(l, LOCK_JOINING, OUT_JOIN) : lose(l);
}

static uint32_t upgrade_listed(struct lock_steps *l, const struct contend_verdict *v) {
    if (v->mine->kind == CONTEND_EXCLUSIVE) return rest(l, TELL_CONVERTED);
    if (l->giving_up) return l->has_mark ? give_up_upgrade(l) : stay_shared(l);
    if (!l->has_mark) return go(l, LOCK_JOINING, OUT_MARK);
    if (v->hopeless) return give_up_upgrade(l);
    if (v->holds) return go(l, LOCK_CONVERTING, OUT_CONVERT);
    return go(l, LOCK_WAITING, OUT_WATCH | TELL_WAITING);
}

static uint32_t on_listed(struct lock_steps *l, const struct lock_input *in,
                          struct contend_verdict *v) {
    if (l->phase != LOCK_LISTING) return 0;
    if (in->result == STEP_LOSS) return list(l);
    if (in->result == STEP_FAILED) return leave(l);
    *v = contend_judge(in->contenders, in->result == STEP_OK ? in->count : 0, in->owner,
                       in->owner_size, l->slots, l->impatient);
    l->has_node = v->mine;
    l->has_mark = v->mark;
    if (!v->mine) return without_node(l);
    l->unsure = false;
    l->sequence = v->mine->sequence;
    l->position = v->position;
    l->chained = v->chained;
    if (l->leaving) return leave(l);
    if (l->upgrading) return upgrade_listed(l, v);
    if (l->holds)
        return v->mine->kind == l->kind ? rest(l, TELL_CONVERTED)
                                        : go(l, LOCK_CONVERTING, OUT_CONVERT);
    l->kind = v->mine->kind; /* of a node from before */
    if (v->mixed && !l->mixes) return leave(l) | TELL_MIXED;
    if (!v->holds) return go(l, LOCK_WAITING, OUT_WATCH | TELL_WAITING);
    l->holds = true;
    /* who wants a slot, too, has to learn that it is the first now */
    return rest(l, TELL_HELD | (l->kind == CONTEND_SLOT ? OUT_NOTE : 0));
}

static uint32_t on_watched(struct lock_steps *l, const struct lock_input *in) {
    if (l->phase != LOCK_WAITING || in->result == STEP_OK) return 0;
    if (in->result == STEP_FAILED) return l->upgrading ? give_up_upgrade(l) : leave(l);
    if (in->result == STEP_NOTED) {
        if (!l->chained) return 0;
        l->impatient = true;
    }
    return list(l);
}

static uint32_t on_left(struct lock_steps *l, const struct lock_input *in) {
    if (l->phase != LOCK_LEAVING) return 0;
    if (in->result == STEP_LOSS) {
        l->unsure = true;
        return list(l);
    }
    l->has_mark = false;
    if (!l->giving_up) return end(l, TELL_ENDED);
    return l->leaving ? leave(l) : stay_shared(l);
}

static uint32_t on_converted(struct lock_steps *l, const struct lock_input *in) {
    if (l->phase != LOCK_CONVERTING) return 0;
    if (in->result == STEP_OK) {
        l->has_mark = false;
        return l->leaving ? leave(l) : rest(l, TELL_CONVERTED);
    }
    if (in->result == STEP_FAILED && !l->leaving) {
        if (l->upgrading) return give_up_upgrade(l);
        l->kind = CONTEND_EXCLUSIVE;
        return rest(l, TELL_HOPELESS);
    }
    l->unsure |= in->result == STEP_LOSS;
    return list(l);
}

/* ---- What the caller wants, and what happens by itself ---- */

static uint32_t on_release(struct lock_steps *l) {
    if (l->phase == LOCK_IDLE) return TELL_ENDED;
    l->holds = false;
    if (l->phase == LOCK_HELD || l->phase == LOCK_WAITING) return leave(l);
    l->leaving = true; /* when what was asked is answered */
    return 0;
}

static uint32_t on_late(struct lock_steps *l) { return l->holds ? on_release(l) | TELL_LOST : 0; }

static uint32_t on_deleted(struct lock_steps *l) {
    if (l->phase == LOCK_HELD || l->phase == LOCK_WAITING) return lose(l);
    if (l->phase != LOCK_LEAVING || !l->giving_up || l->leaving) return 0; /* the answer tells */
    l->holds = false;
    l->leaving = true;
    return TELL_LOST;
}

static uint32_t on_stay(struct lock_steps *l) {
    if (!l->upgrading || l->giving_up || l->leaving) return 0;
    if (l->phase == LOCK_WAITING) return give_up_upgrade(l);
    l->giving_up = true;
    return 0;
}

static uint32_t on_call(struct lock_steps *l, enum lock_event event) {
    switch (event) {
    case LOCK_START: return l->phase == LOCK_IDLE ? go(l, LOCK_JOINING, OUT_JOIN) : 0;
    case LOCK_RESUME:
        if (l->phase != LOCK_IDLE) return 0;
        l->unsure = true;
        return list(l);
    case LOCK_RELEASE: return on_release(l);
    case LOCK_UPGRADE:
        if (l->phase != LOCK_HELD || l->kind != CONTEND_SHARED) return 0;
        l->kind = CONTEND_EXCLUSIVE;
        l->upgrading = true;
        return go(l, LOCK_JOINING, OUT_MARK);
    case LOCK_DOWNGRADE:
        if (l->phase != LOCK_HELD || l->kind != CONTEND_EXCLUSIVE) return 0;
        l->kind = CONTEND_SHARED;
        return go(l, LOCK_CONVERTING, OUT_CONVERT);
    case LOCK_STAY: return on_stay(l);
    default: return 0;
    }
}

uint32_t lock_step(struct lock_steps *l, const struct lock_input *in,
                   struct contend_verdict *verdict) {
    switch (in->event) {
    case LOCK_CREATED: return on_created(l, in);
    case LOCK_LISTED: return on_listed(l, in, verdict);
    case LOCK_PREPARED: return on_prepared(l, in);
    case LOCK_WATCHED: return on_watched(l, in);
    case LOCK_LEFT: return on_left(l, in);
    case LOCK_CONVERTED: return on_converted(l, in);
    case LOCK_NOTED: return l->phase == LOCK_HELD && in->result == STEP_LOSS ? OUT_NOTE : 0;
    case LOCK_FIRED:
        if (l->phase != LOCK_WAITING) return 0;
        l->impatient = false;
        return list(l);
    case LOCK_DELETED: return on_deleted(l);
    case LOCK_LATE: return on_late(l);
    case LOCK_EXPIRED:
        if (l->phase == LOCK_IDLE) return 0;
        return end(l, l->leaving ? TELL_ENDED : TELL_LOST);
    default: return on_call(l, in->event);
    }
}
