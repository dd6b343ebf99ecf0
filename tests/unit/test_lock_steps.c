/* The steps of a lock's contenders, in every order: clients whose requests and answers take their
 * time, connections that break before or after a request was served, requests that are served late,
 * sessions that end, clients that give up, strangers who delete nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "recipe/lock_steps.h"

enum { CLIENTS = 4, NODES = 8, ITEMS = 10, WATCHES = 6 };

/* ---- The model ---- */

struct node {
    uint8_t owner; /* client + 1; 0: unused */
    uint8_t kind;
    int8_t sequence;
    uint8_t noted;
};

enum op { NO_OP, CREATE, LIST, SYNC, WATCH, NOTE, CONVERT, LEAVE, PARENTS };

struct item {
    uint8_t op;       /* asked; NO_OP: an event */
    uint8_t answered; /* 1: served, the answer is on its way; 2: it is lost */
    uint8_t event;    /* of an event */
    uint8_t result;
    uint8_t kind;
    uint8_t count;
    int8_t sequence;
    uint8_t only_mark;
    struct node node, other; /* whom it concerns */
    struct node listed[NODES];
};

struct watch {
    struct node node;
    uint8_t confirmed; /* the answer has come, so it survives the connection */
};

struct client {
    struct lock_steps steps;
    struct node mine, mark;
    struct item item[ITEMS];
    struct watch watch[WATCHES];
    struct item ghost; /* a request of a broken connection, which may still be served */
    uint8_t items;
    uint8_t started, done, upgraded, downgraded;
};

struct world {
    struct node node[NODES];
    struct client client[CLIENTS];
    int8_t next;
    uint8_t has_parent;
    uint8_t losses, deletions, expiries, retreats, lates; /* that may still happen */
    uint8_t woken;                                        /* by the last release */
};

struct plan {
    enum contend_kind kind[CLIENTS];
    enum contend_recipe recipe[CLIENTS];
    int32_t slots;
    bool upgrades[CLIENTS], downgrades[CLIENTS];
    uint8_t clients, losses, deletions, expiries, retreats, lates;
    bool has_parent;
    bool in_turn;  /* each starts when the one before it has come to rest */
    int8_t first;  /* sequence number, so that it can overflow */
    uint8_t wakes; /* at most so many by a release; 0: not looked at */
};

static const char *const owners[CLIENTS] = {"a", "b", "c", "d"};

static bool same(struct node a, struct node b) {
    return a.owner == b.owner && a.kind == b.kind && a.sequence == b.sequence;
}

static int32_t wide(int8_t sequence) { return (int32_t)((uint32_t)(int32_t)sequence << 24); }

static struct node *find(struct world *w, struct node node) {
    for (int i = 0; i < NODES; i++)
        if (w->node[i].owner && same(w->node[i], node)) return &w->node[i];
    return NULL;
}

static struct item *push(struct client *c, struct item item) {
    assert_true(c->items < ITEMS);
    c->item[c->items] = item;
    return &c->item[c->items++];
}

static void fire(struct world *w, struct node node, bool deleted) {
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &w->client[i];
        for (int j = 0; j < WATCHES; j++) {
            if (!c->watch[j].node.owner || !same(c->watch[j].node, node)) continue;
            push(c,
                 (struct item){.event = LOCK_FIRED, .node = node, .kind = c->watch[j].confirmed});
            c->watch[j] = (struct watch){0};
            w->woken += c->steps.phase == LOCK_WAITING;
        }
        if (deleted && node.owner == i + 1)
            push(c, (struct item){.event = LOCK_DELETED, .node = node, .kind = true});
    }
}

static void delete_node(struct world *w, struct node node) {
    struct node *at = find(w, node);
    if (!at) return;
    *at = (struct node){0};
    fire(w, node, true);
}

static void add_node(struct world *w, struct node node) {
    for (int i = 0; i < NODES; i++)
        if (!w->node[i].owner) {
            w->node[i] = node;
            return;
        }
    fail_msg("too many nodes");
}

/* Equal sets have equal bytes. */
static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(struct node)); }
static void sort_nodes(struct world *w) { qsort(w->node, NODES, sizeof *w->node, by_bytes); }

/* ---- Its server ---- */

static void serve_list(struct world *w, struct item *item) {
    item->count = 0;
    for (int i = 0; i < NODES; i++)
        if (w->node[i].owner) item->listed[item->count++] = w->node[i];
}

static void serve_convert(struct world *w, struct item *item) {
    struct node old = item->node, new = item->node;
    new.kind = item->kind;
    struct node mark = {old.owner, CONTEND_UPGRADE, item->sequence, 0};
    bool with_mark = new.kind == CONTEND_EXCLUSIVE;
    if (!find(w, old) || (with_mark && !find(w, mark)) || find(w, new) ||
        (item->other.owner && !find(w, item->other))) {
        item->result = STEP_NO_NODE;
        return;
    }
    delete_node(w, old);
    if (with_mark) delete_node(w, mark);
    add_node(w, new);
}

static void serve_watch(struct world *w, struct client *c, struct item *item) {
    struct node *at = find(w, item->node);
    if (!at) {
        item->result = STEP_NO_NODE;
        return;
    }
    item->result = at->noted ? STEP_NOTED : STEP_OK;
    for (int i = 0; i < WATCHES; i++)
        if (c->watch[i].node.owner && same(c->watch[i].node, item->node)) return;
    for (int i = 0; i < WATCHES; i++)
        if (!c->watch[i].node.owner) {
            c->watch[i].node = item->node;
            c->watch[i].node.noted = 0;
            return;
        }
    fail_msg("too many watches");
}

static void serve(struct world *w, int who, struct item *at, const struct plan *plan) {
    struct client *c = &w->client[who];
    struct item item = *at; /* events may be put behind it, or in front, meanwhile */
    item.answered = 1;
    item.result = STEP_OK;
    at->answered = 3;
    switch (item.op) {
    case CREATE:
        if (!w->has_parent) {
            item.result = STEP_NO_NODE;
        } else {
            item.sequence = w->next++;
            add_node(w, (struct node){(uint8_t)(who + 1), item.kind, item.sequence, 0});
        }
        break;
    case PARENTS: w->has_parent = 1; break;
    case LIST:
        if (w->has_parent)
            serve_list(w, &item);
        else
            item.result = STEP_NO_NODE;
        break;
    case SYNC:
        if (c->ghost.op) {
            struct item ghost = c->ghost;
            c->ghost = (struct item){0};
            serve(w, who, &ghost, plan);
        }
        break;
    case WATCH: serve_watch(w, c, &item); break;
    case NOTE:
        if (find(w, item.node)) {
            find(w, item.node)->noted = 1;
            fire(w, item.node, false);
        }
        break;
    case CONVERT: serve_convert(w, &item); break;
    case LEAVE:
        w->woken = 0;
        if (!item.only_mark) delete_node(w, item.node);
        delete_node(w, item.other);
        if (plan->wakes) assert_true(w->woken <= plan->wakes);
        w->woken = 0;
        break;
    default: fail_msg("no such request");
    }
    sort_nodes(w);
    *at = item;
    at->answered = 1;
}

/* ---- Its clients ---- */

static enum contend_kind held_kind(const struct lock_steps *l) {
    return l->upgrading ? CONTEND_SHARED : l->kind;
}

/* Whose node a stranger has deleted may learn it late: only guarded writes exclude it. */
static bool counts(struct world *w, const struct client *c, const struct plan *plan) {
    return c->steps.holds && (!plan->deletions || find(w, c->mine));
}

static void check_exclusion(struct world *w, const struct plan *plan) {
    int held[4] = {0}, all = 0;
    for (int i = 0; i < CLIENTS; i++)
        if (counts(w, &w->client[i], plan)) {
            held[held_kind(&w->client[i].steps)]++;
            all++;
        }
    assert_true(held[CONTEND_EXCLUSIVE] == 0 || all == 1);
    assert_true(held[CONTEND_SHARED] == 0 || held[CONTEND_SHARED] == all);
    assert_true(held[CONTEND_SLOT] <= plan->slots);
}

static struct contender contender_of(struct node n, const struct plan *plan) {
    return (struct contender){.name = "",
                              .owner = owners[n.owner - 1],
                              .owner_size = 1,
                              .kind = n.kind,
                              .recipe = plan->recipe[n.owner - 1],
                              .sequence = wide(n.sequence)};
}

static void step(struct world *w, int who, const struct item *item, enum lock_event event,
                 const struct plan *plan) {
    struct client *c = &w->client[who];
    struct contender all[NODES];
    struct lock_input in = {.event = event, .owner = owners[who], .owner_size = 1};
    struct contend_verdict v = {0};
    if (item) {
        in.result = item->answered == 2 ? STEP_LOSS : item->result;
        in.sequence = wide(item->sequence);
        for (in.count = 0; in.count < item->count; in.count++)
            all[in.count] = contender_of(item->listed[in.count], plan);
        in.contenders = all;
        struct node made = {(uint8_t)(who + 1), item->kind, item->sequence, 0};
        if (event == LOCK_CREATED && in.result == STEP_OK)
            *(item->kind == CONTEND_UPGRADE ? &c->mark : &c->mine) = made;
        if (event == LOCK_CONVERTED && in.result == STEP_OK) c->mine.kind = item->kind;
    }
    uint32_t out = lock_step(&c->steps, &in, &v);
    if (v.mine) c->mine = item->listed[v.mine - all];
    if (v.mark) c->mark = item->listed[v.mark - all];
    if (v.extra) fail_msg("two nodes of one client");
    c->mine.noted = c->mark.noted = 0;
    if (out & OUT_PARENTS) push(c, (struct item){.op = PARENTS});
    if (out & (OUT_JOIN | OUT_MARK)) {
        enum contend_kind kind = out & OUT_MARK ? CONTEND_UPGRADE : c->steps.kind;
        push(c, (struct item){.op = CREATE, .kind = (uint8_t)kind});
        push(c, (struct item){.op = LIST});
    }
    if (out & OUT_SYNC) push(c, (struct item){.op = SYNC});
    if (out & OUT_LIST) push(c, (struct item){.op = LIST});
    if (out & OUT_WATCH)
        for (size_t i = 0; i < in.count; i++)
            if (all[i].watch) {
                struct node node = item->listed[i];
                node.noted = 0;
                push(c, (struct item){.op = WATCH, .node = node});
            }
    if (out & OUT_NOTE) push(c, (struct item){.op = NOTE, .node = c->mine});
    if (out & OUT_CONVERT) {
        struct item convert = {.op = CONVERT,
                               .node = c->mine,
                               .kind = (uint8_t)c->steps.kind,
                               .sequence = c->mark.sequence};
        if (v.blocker) convert.other = item->listed[v.blocker - all];
        convert.other.noted = 0;
        push(c, convert);
    }
    if (out & OUT_LEAVE)
        push(c,
             (struct item){
                 .op = LEAVE, .node = c->mine, .other = c->mark, .only_mark = c->steps.giving_up});
    if (c->steps.phase == LOCK_IDLE) {
        c->done = 1;
        c->mine = c->mark = (struct node){0};
    }
    check_exclusion(w, plan);
}

/* The client knows of the watch from now on, also if it has fired already. */
static void confirm_watch(struct client *c, struct node node) {
    for (int i = 0; i < WATCHES; i++)
        if (same(c->watch[i].node, node)) c->watch[i].confirmed = 1;
    for (int i = 0; i < c->items; i++)
        if (c->item[i].event == LOCK_FIRED && same(c->item[i].node, node)) c->item[i].kind = true;
}

static void deliver(struct world *w, int who, const struct plan *plan) {
    static const enum lock_event answers[] = {
        [CREATE] = LOCK_CREATED,   [LIST] = LOCK_LISTED,       [WATCH] = LOCK_WATCHED,
        [NOTE] = LOCK_NOTED,       [CONVERT] = LOCK_CONVERTED, [LEAVE] = LOCK_LEFT,
        [PARENTS] = LOCK_PREPARED,
    };
    struct client *c = &w->client[who];
    struct item item = c->item[0];
    memmove(&c->item[0], &c->item[1], sizeof c->item - sizeof c->item[0]);
    memset(&c->item[ITEMS - 1], 0, sizeof c->item[0]);
    c->items--;
    if (item.op == NO_OP) {
        if (item.event == LOCK_DELETED && !same(item.node, c->mine)) return;
        step(w, who, &item, item.event, plan);
    } else if (item.op != SYNC) {
        if (item.op == WATCH && item.answered == 1) confirm_watch(c, item.node);
        step(w, who, &item, answers[item.op], plan);
    }
}

/* The connection breaks: answers that are on their way are lost, and requests, but the first one
 * of these may still be served. */
static void break_connection(struct world *w, int who, bool with_ghost) {
    struct client *c = &w->client[who];
    uint8_t kept = 0;
    bool first = true;
    for (uint8_t i = 0; i < c->items; i++) {
        struct item item = c->item[i];
        if (item.op == NO_OP && !item.kind) continue; /* of a watch whose answer is lost */
        if (item.op && !item.answered && first) {
            first = false;
            if (with_ghost && item.op == CREATE) c->ghost = item;
        }
        if (item.op) {
            memset(item.listed, 0, sizeof item.listed);
            item.count = 0;
            item.answered = 2;
        }
        c->item[kept++] = item;
    }
    memset(&c->item[kept], 0, (ITEMS - kept) * sizeof c->item[0]);
    c->items = kept;
    for (int i = 0; i < WATCHES; i++)
        if (!c->watch[i].confirmed) c->watch[i] = (struct watch){0};
}

static void expire(struct world *w, int who, const struct plan *plan) {
    struct client *c = &w->client[who];
    memset(c->item, 0, sizeof c->item);
    memset(c->watch, 0, sizeof c->watch);
    c->ghost = (struct item){0};
    c->items = 0;
    for (int i = 0; i < NODES; i++)
        if (w->node[i].owner == who + 1) delete_node(w, w->node[i]);
    memset(c->item, 0, sizeof c->item);
    c->items = 0;
    step(w, who, NULL, LOCK_EXPIRED, plan);
    sort_nodes(w);
}

/* ---- Every order ---- */

struct explorer {
    const struct plan *plan;
    uint64_t *seen;
    size_t room, states, granted, upgraded;
};

static void explore(struct explorer *x, const struct world *w);

static bool first_visit(struct explorer *x, const struct world *w) {
    uint64_t hash = hash_long(w, sizeof *w, 1) | 1;
    size_t at = hash & (x->room - 1);
    while (x->seen[at] && x->seen[at] != hash) at = (at + 1) & (x->room - 1);
    if (x->seen[at]) return false;
    x->seen[at] = hash;
    assert_true(++x->states < x->room / 2);
    return true;
}

/* TRY(CONDITION, ACTION): another world, if that can happen. */
#define TRY(CONDITION, ACTION)                                                                     \
    TRY_WORLD(CONDITION, struct client *c = &next->client[i]; (void)c; ACTION)
#define TRY_WORLD(CONDITION, ACTION)                                                               \
    if (CONDITION) {                                                                               \
        struct world *next = malloc(sizeof *next);                                                 \
        assert_non_null(next);                                                                     \
        *next = *w;                                                                                \
        ACTION;                                                                                    \
        explore(x, next);                                                                          \
        free(next);                                                                                \
        moves++;                                                                                   \
    }

static bool may_start(const struct world *w, int i, const struct plan *plan) {
    const struct client *before = &w->client[i ? i - 1 : 0];
    return i == 0 || !plan->in_turn ||
           (before->started && !before->items &&
            (before->done || before->steps.phase == LOCK_HELD ||
             before->steps.phase == LOCK_WAITING));
}

/* When nothing is under way, everybody is where it should be: nobody waits who could hold. */
static void check_calm(const struct world *w, const struct plan *plan) {
    struct contender all[NODES];
    size_t count = 0;
    for (int i = 0; i < CLIENTS; i++)
        if (w->client[i].items || w->client[i].ghost.op) return;
    for (int i = 0; i < NODES; i++)
        if (w->node[i].owner) all[count++] = contender_of(w->node[i], plan);
    for (int i = 0; i < CLIENTS; i++) {
        const struct lock_steps *l = &w->client[i].steps;
        assert_true(!l->leaving && !l->giving_up);
        assert_true(l->phase == LOCK_IDLE || l->phase == LOCK_HELD || l->phase == LOCK_WAITING);
        struct contend_verdict v = contend_judge(all, count, owners[i], 1, plan->slots, false);
        if (l->upgrading && !v.mark) continue; /* a stranger has deleted it */
        if (l->phase == LOCK_WAITING) assert_true(v.mine && !v.holds && !v.hopeless);
        if (l->phase == LOCK_HELD) assert_true(v.mine && v.holds);
        assert_false(v.mixed);
    }
}

static size_t explore_client(struct explorer *x, const struct world *w, int i) {
    const struct plan *p = x->plan;
    const struct client *was = &w->client[i];
    const struct lock_steps *l = &was->steps;
    size_t moves = 0;
    uint8_t pending = 0;
    while (pending < was->items && (was->item[pending].answered || !was->item[pending].op))
        pending++;
    TRY(!was->started && may_start(w, i, p), (c->started = 1, step(next, i, NULL, LOCK_START, p)));
    TRY(pending < was->items, {
        struct item item = c->item[pending];
        uint8_t before = c->items;
        serve(next, i, &item, p);
        /* what it fired for this client itself came before its answer */
        uint8_t fired = (uint8_t)(c->items - before);
        struct item events[ITEMS];
        memcpy(events, &c->item[before], fired * sizeof *events);
        memmove(&c->item[pending + fired], &c->item[pending],
                (size_t)(before - pending) * sizeof *events);
        memcpy(&c->item[pending], events, fired * sizeof *events);
        c->item[pending + fired] = item;
    });
    TRY(was->items && (!was->item[0].op || was->item[0].answered), deliver(next, i, p));
    TRY(l->phase == LOCK_HELD, step(next, i, NULL, LOCK_RELEASE, p));
    TRY(l->phase == LOCK_HELD && p->upgrades[i] && !was->upgraded && l->kind == CONTEND_SHARED,
        (c->upgraded = 1, step(next, i, NULL, LOCK_UPGRADE, p)));
    TRY(l->phase == LOCK_HELD && p->downgrades[i] && !was->downgraded &&
            l->kind == CONTEND_EXCLUSIVE,
        (c->downgraded = 1, step(next, i, NULL, LOCK_DOWNGRADE, p)));
    TRY(w->retreats && l->phase != LOCK_IDLE && !l->holds && !l->leaving,
        (next->retreats--, step(next, i, NULL, LOCK_RELEASE, p)));
    TRY(w->retreats && l->upgrading && !l->giving_up && !l->leaving,
        (next->retreats--, step(next, i, NULL, LOCK_STAY, p)));
    TRY(w->losses && was->items, (next->losses--, break_connection(next, i, false)));
    TRY(w->losses && pending < was->items && was->item[pending].op == CREATE,
        (next->losses--, break_connection(next, i, true)));
    TRY(was->ghost.op, {
        struct item ghost = c->ghost;
        c->ghost = (struct item){0};
        serve(next, i, &ghost, p);
    });
    TRY(w->lates && l->holds, (next->lates--, step(next, i, NULL, LOCK_LATE, p)));
    TRY(w->expiries && !l->holds && l->phase != LOCK_IDLE, (next->expiries--, expire(next, i, p)));
    return moves;
}

static void explore(struct explorer *x, const struct world *w) {
    size_t moves = 0;
    if (!first_visit(x, w)) return;
    check_calm(w, x->plan);
    for (int i = 0; i < x->plan->clients; i++) {
        moves += explore_client(x, w, i);
        if (w->client[i].steps.holds) x->granted++;
        if (w->client[i].upgraded && w->client[i].steps.holds &&
            held_kind(&w->client[i].steps) == CONTEND_EXCLUSIVE)
            x->upgraded++;
    }
    for (int i = 0; i < NODES && w->deletions; i++)
        TRY_WORLD(w->node[i].owner, {
            next->deletions--;
            struct node node = next->node[i];
            delete_node(next, node);
            sort_nodes(next);
        });
    if (moves) return;
    /* Nothing can happen any more: nobody waits, nothing is left. */
    for (int i = 0; i < x->plan->clients; i++) {
        assert_true(w->client[i].done);
        assert_int_equal(w->client[i].steps.phase, LOCK_IDLE);
    }
    for (int i = 0; i < NODES; i++) assert_int_equal(w->node[i].owner, 0);
}

static void try_all(const char *name, struct plan plan) {
    struct explorer x = {.plan = &plan, .room = (size_t)1 << 24};
    x.seen = calloc(x.room, sizeof *x.seen);
    assert_non_null(x.seen);
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    if (!plan.slots) plan.slots = 1;
    for (int i = 0; i < CLIENTS; i++)
        w->client[i].steps = (struct lock_steps){.kind = plan.kind[i], .slots = plan.slots};
    w->has_parent = plan.has_parent;
    w->next = plan.first;
    w->losses = plan.losses;
    w->deletions = plan.deletions;
    w->expiries = plan.expiries;
    w->retreats = plan.retreats;
    w->lates = plan.lates;
    explore(&x, w);
    assert_true(x.granted > 0);
    for (int i = 0; i < CLIENTS; i++)
        if (plan.upgrades[i]) assert_true(x.upgraded > 0);
    printf("%s: %zu states\n", name, x.states);
    free(w);
    free(x.seen);
}

#define WITH_PARENT .has_parent = true
#define THREE(KIND) .clients = 3, .kind = {KIND, KIND, KIND}
#define TWO(KIND)   .clients = 2, .kind = {KIND, KIND}

static void test_exclusive(void **state) {
    (void)state;
    try_all("exclusive", (struct plan){WITH_PARENT, THREE(CONTEND_EXCLUSIVE), .wakes = 1});
    try_all("exclusive, numbers overflow",
            (struct plan){WITH_PARENT, THREE(CONTEND_EXCLUSIVE), .first = 126, .wakes = 1});
    try_all("exclusive, no parent", (struct plan){TWO(CONTEND_EXCLUSIVE), .losses = 1});
    try_all("exclusive, a connection breaks",
            (struct plan){WITH_PARENT, THREE(CONTEND_EXCLUSIVE), .losses = 1, .wakes = 1});
    try_all("exclusive, connections break",
            (struct plan){WITH_PARENT, TWO(CONTEND_EXCLUSIVE), .losses = 3, .wakes = 1});
    try_all("exclusive, give up",
            (struct plan){WITH_PARENT, THREE(CONTEND_EXCLUSIVE), .retreats = 2, .wakes = 1});
    try_all("exclusive, strangers delete",
            (struct plan){WITH_PARENT, THREE(CONTEND_EXCLUSIVE), .deletions = 1});
    try_all("exclusive, late and expired",
            (struct plan){WITH_PARENT, TWO(CONTEND_EXCLUSIVE), .losses = 1, .expiries = 1,
                          .lates = 1, .deletions = 1});
}

static void test_shared(void **state) {
    (void)state;
    const struct plan plan = {WITH_PARENT, .clients = 3,
                              .kind = {CONTEND_SHARED, CONTEND_EXCLUSIVE, CONTEND_SHARED}};
    struct plan faults = plan;
    try_all("shared", plan);
    faults.losses = 1;
    try_all("shared, breaks", faults);
    faults.losses = 0;
    faults.retreats = 1;
    try_all("shared, give up", faults);
}

static void test_slots(void **state) {
    (void)state;
    try_all("slots", (struct plan){WITH_PARENT, THREE(CONTEND_SLOT), .slots = 1, .wakes = 1});
    try_all("two slots", (struct plan){WITH_PARENT, THREE(CONTEND_SLOT), .slots = 2, .wakes = 1});
    try_all("two slots, four who come in turn",
            (struct plan){WITH_PARENT, .in_turn = true, .clients = 4, .slots = 2, .wakes = 2,
                          .kind = {CONTEND_SLOT, CONTEND_SLOT, CONTEND_SLOT, CONTEND_SLOT}});
    try_all("slots, breaks",
            (struct plan){WITH_PARENT, THREE(CONTEND_SLOT), .slots = 1, .losses = 1, .wakes = 1});
    try_all("slots, give up",
            (struct plan){WITH_PARENT, THREE(CONTEND_SLOT), .slots = 1, .retreats = 1});
    try_all("slots, deletions",
            (struct plan){WITH_PARENT, TWO(CONTEND_SLOT), .slots = 1, .deletions = 2});
    try_all("slots and an exclusive one",
            (struct plan){WITH_PARENT, .clients = 3, .slots = 2,
                          .kind = {CONTEND_SLOT, CONTEND_EXCLUSIVE, CONTEND_SLOT}});
}

static void test_upgrade(void **state) {
    (void)state;
    struct plan plan = {WITH_PARENT, .clients = 3,
                        .kind = {CONTEND_SHARED, CONTEND_SHARED, CONTEND_EXCLUSIVE},
                        .upgrades = {true}};
    try_all("upgrade", plan);
    try_all("upgrade, somebody between gives up",
            (struct plan){WITH_PARENT, .in_turn = true, .clients = 3, .retreats = 1,
                          .kind = {CONTEND_SHARED, CONTEND_EXCLUSIVE, CONTEND_SHARED},
                          .upgrades = {true}});
    plan.upgrades[1] = true;
    try_all("two upgrades", plan);
    plan.downgrades[0] = plan.downgrades[2] = true;
    try_all("up- and downgrades", plan);
    try_all("upgrade, give up", (struct plan){WITH_PARENT, TWO(CONTEND_SHARED), .retreats = 2,
                                              .upgrades = {true, true}});
    try_all("upgrade, breaks", (struct plan){WITH_PARENT, TWO(CONTEND_SHARED), .losses = 2,
                                             .upgrades = {true, true}, .downgrades = {true}});
    try_all("upgrade, deletion, late",
            (struct plan){WITH_PARENT, TWO(CONTEND_SHARED), .deletions = 1, .lates = 1,
                          .expiries = 1, .upgrades = {true, true}});
    try_all("downgrade, breaks",
            (struct plan){WITH_PARENT, .clients = 3, .losses = 1, .downgrades = {true, true},
                          .kind = {CONTEND_EXCLUSIVE, CONTEND_EXCLUSIVE, CONTEND_SHARED}});
}

/* Those who do not wait for each other exclude each other, too: who is second gives up. */
static void test_recipes(void **state) {
    (void)state;
    struct plan plan = {WITH_PARENT, THREE(CONTEND_EXCLUSIVE),
                        .recipe = {CONTEND_CURATOR, CONTEND_KAZOO, CONTEND_CURATOR}};
    try_all("recipes", plan);
    plan.losses = 1;
    try_all("recipes, breaks", plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_slots),     cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_recipes),
    };
    return cmocka_run_group_tests_name("lock_steps", tests, NULL, NULL);
}
