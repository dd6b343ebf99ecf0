/* Records of servers as one trace: what each did, whose messages these were, and the order. */
#include "lab/servers/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/grow.h"
#include "base/member_id.h"
#include "lab/servers/describe.h"

enum {
    IDS = 256,
    NOTHING = 0,    /* the index of no message */
    LOOK_BACK = 64, /* of messages that overtake others, and of those that are lost */
    LOOK_AHEAD = 4096,
};

struct letter { /* a message, sent or received */
    struct raft_message message;
    uint32_t match; /* of one that was received: the sending; of one that was sent: not 0, taken */
    uint32_t entry; /* of the trace */
    uint64_t moment;
};

/* In the order in which they come if all may: messages arrive before anybody loses patience. */
enum act_type { ACT_END, ACT_OTHER, ACT_RECEIVE, ACT_DOWN, ACT_TIMER, ACT_START };

struct act { /* a step of which something can be seen */
    enum act_type type;
    uint32_t received, first_sent, sent; /* messages */
    uint64_t since_ms;                   /* when its process was started */
    struct server_state state;
    uint8_t leader; /* an id; 0: nobody */
    uint8_t about;  /* ACT_DOWN: whose process has ended */
};

struct channel { /* from one server to another: what was sent, in order */
    uint32_t *letter;
    size_t count, room, next;
};

struct lane { /* a server */
    struct act *act;
    size_t count, room, next;
    uint64_t incarnation, moment;
    struct act last;    /* what was shown */
    struct channel *to; /* by id; NULL: it has sent nothing */
    cv_pid pid;
};

struct servers_picture {
    struct lane lane[IDS];
    struct letter *letter; /* from 1 */
    size_t letters, room;
    struct server_state before;
    uint8_t leader_before;
    struct servers_description description;
    struct trace trace;
    char names[IDS + 1][ROSTER_NAME_MAX]; /* by pid */
    uint64_t now_us;
};

struct servers_picture *servers_picture_open(void) {
    struct servers_picture *picture = calloc(1, sizeof *picture);
    cv_assert(picture);
    picture->letters = 1;
    return picture;
}

void servers_picture_close(struct servers_picture *picture) {
    for (unsigned i = 0; i < IDS; i++) {
        struct lane *lane = &picture->lane[i];
        for (unsigned j = 0; lane->to && j < IDS; j++) free(lane->to[j].letter);
        free(lane->to);
        free(lane->act);
    }
    trace_close(&picture->trace);
    free(picture->letter);
    free(picture);
}

/* ---- Steps ---- */

static uint32_t add_letter(struct servers_picture *p, const struct raft_message *message) {
    p->letter = grown(p->letter, &p->room, p->letters + 1, sizeof *p->letter);
    struct letter *letter = &p->letter[p->letters];
    *letter = (struct letter){.message = *message};
    /* The kind of its entries is the owner's to know, and not in what the core has made. */
    if (message->type == RAFT_APPEND_ENTRIES) letter->message.append_entries.entry_kind = 0;
    return (uint32_t)p->letters++;
}

static void add_sent(struct servers_picture *p, struct act *act,
                     const struct raft_message *message) {
    uint32_t index = add_letter(p, message);
    struct lane *lane = &p->lane[message->from];
    if (!lane->to) lane->to = calloc(IDS, sizeof *lane->to);
    cv_assert(lane->to);
    struct channel *channel = &lane->to[message->to];
    channel->letter =
        grown(channel->letter, &channel->room, channel->count + 1, sizeof *channel->letter);
    channel->letter[channel->count++] = index;
    if (!act->sent++) act->first_sent = index;
}

static struct server_state state_of(const struct raft *raft) {
    return (struct server_state){.role = raft->role,
                                 .term = raft->term,
                                 .commit_index = raft->commit_index,
                                 .last_index = raft->last_index};
}

static void add_act(struct lane *lane, struct act act) {
    lane->act = grown(lane->act, &lane->room, lane->count + 1, sizeof *lane->act);
    lane->act[lane->count++] = act;
}

void servers_picture_begin(struct servers_picture *p, const struct checkpoint *c) {
    struct lane *lane = &p->lane[c->raft.self];
    bool starts = c->incarnation != lane->incarnation || !lane->count;
    if (starts && lane->count) {
        struct act end = lane->act[lane->count - 1];
        add_act(lane, (struct act){.type = ACT_END, .since_ms = end.since_ms, .state = end.state});
    }
    p->before = state_of(&c->raft);
    p->leader_before = c->raft.leader;
    if (starts)
        add_act(lane, (struct act){.type = ACT_START, .since_ms = c->time_ms, .state = p->before});
    lane->incarnation = c->incarnation;
}

bool servers_picture_step(struct servers_picture *p, const struct raft *raft,
                          const struct step *step, const struct raft_out *out, uint64_t result) {
    struct act act = {.type = step->type == STEP_TIMER  ? ACT_TIMER
                              : step->type == STEP_DOWN ? ACT_DOWN
                                                        : ACT_OTHER,
                      .about = step->id};
    if (step->type == STEP_RECEIVE) {
        act.type = ACT_RECEIVE;
        act.received = add_letter(p, step->message);
    }
    for (uint32_t i = 0; i < out->messages; i++) add_sent(p, &act, &out->message[i]);
    if (step_is_sending(step, result)) add_sent(p, &act, step->message);
    act.state = state_of(raft);
    act.leader = raft->leader;
    bool same = act.state.role == p->before.role && act.state.term == p->before.term &&
                act.leader == p->leader_before;
    struct lane *lane = &p->lane[raft->self];
    act.since_ms = lane->act[lane->count - 1].since_ms;
    bool seen = act.type == ACT_RECEIVE || act.type == ACT_TIMER || act.sent || !same;
    if (seen) add_act(lane, act);
    p->before = act.state;
    p->leader_before = act.leader;
    return p->letters <= TRACE_ENTRIES_MAX;
}

/* ---- Whose messages these were ---- */

#define SAME_FIELD(TYPE, NAME, FROM) &&one->NAME == other->NAME
#define SAME_MESSAGE(NUMBER, NAME, TITLE)                                                          \
    case NUMBER: {                                                                                 \
        const struct raft_##NAME *one = &a->NAME, *other = &b->NAME;                               \
        return true RAFT_FIELDS_##NAME(SAME_FIELD);                                                \
    }

/* Of two messages between the same servers. */
static bool is_same(const struct raft_message *a, const struct raft_message *b) {
    if (a->term != b->term || a->type != b->type) return false;
    switch (a->type) { RAFT_MESSAGES(SAME_MESSAGE) }
    return false;
}

static bool is_free(const struct servers_picture *p, uint32_t sent,
                    const struct raft_message *message) {
    const struct letter *letter = &p->letter[sent];
    return !letter->match && is_same(&letter->message, message);
}

/* The oldest of those that are like it: messages of a channel arrive in order, but heartbeats may
 * overtake, and what a broken connection has lost never arrives. */
static void match(struct servers_picture *p, uint32_t received) {
    struct letter *letter = &p->letter[received];
    const struct lane *sender = &p->lane[letter->message.from];
    if (!sender->to) return;
    struct channel *channel = &sender->to[letter->message.to];
    size_t from = channel->next > LOOK_BACK ? channel->next - LOOK_BACK : 0;
    for (size_t i = from; i < channel->count && i < channel->next + LOOK_AHEAD; i++) {
        if (!is_free(p, channel->letter[i], &letter->message)) continue;
        letter->match = channel->letter[i];
        p->letter[letter->match].match = received;
        if (channel->next < i + 1) channel->next = i + 1;
        return;
    }
}

static void match_all(struct servers_picture *p) {
    for (unsigned id = 0; id < IDS; id++)
        for (size_t i = 0; i < p->lane[id].count; i++)
            if (p->lane[id].act[i].received) match(p, p->lane[id].act[i].received);
}

uint64_t servers_picture_unsent(const struct servers_picture *p) {
    uint64_t count = 0;
    for (unsigned id = 0; id < IDS; id++)
        for (size_t i = 0; i < p->lane[id].count; i++) {
            uint32_t received = p->lane[id].act[i].received;
            count += received && !p->letter[received].match;
        }
    return count;
}

/* ---- The trace ---- */

static uint32_t add_entry(struct servers_picture *p, struct lane *lane, struct trace_entry entry) {
    entry.time_us = p->now_us;
    entry.process = lane->pid;
    return trace_add(&p->trace, entry);
}

static void show_letter(struct servers_picture *p, struct lane *lane, uint32_t index,
                        struct trace_entry entry) {
    struct letter *letter = &p->letter[index];
    uint8_t other = entry.type == TR_SEND ? letter->message.to : letter->message.from;
    entry.peer = p->lane[other].pid;
    entry.kind = letter->message.type;
    letter->entry = add_entry(p, lane, entry);
    letter->moment = lane->moment;
    trace_body(&p->trace, letter->entry, &letter->message, sizeof letter->message);
}

/* What the step began with; 0: nothing that is shown. */
static uint32_t show_event(struct servers_picture *p, struct lane *lane, const struct act *act) {
    struct trace_entry entry = {0};
    if (act->type == ACT_RECEIVE) {
        uint32_t sending = p->letter[act->received].match;
        show_letter(p, lane, act->received,
                    (struct trace_entry){.type = TR_RECEIVE,
                                         .match = sending ? p->letter[sending].entry : NOTHING});
        return p->letter[act->received].entry;
    }
    switch (act->type) {
    case ACT_START: entry.type = lane->next > 1 ? TR_RECOVER : TR_START; break;
    case ACT_END: entry.type = TR_CRASH; break;
    case ACT_TIMER: entry.type = TR_TIMER; break;
    case ACT_DOWN:
        entry.type = TR_SUSPECT;
        entry.peer = p->lane[act->about].pid;
        break;
    case ACT_RECEIVE:
    case ACT_OTHER: return 0;
    }
    return add_entry(p, lane, entry);
}

static void show_leader(struct servers_picture *p, struct lane *lane, const struct act *act,
                        uint32_t cause) {
    bool leads = act->state.role == RAFT_LEADER;
    bool same = act->leader == lane->last.leader && act->state.term == lane->last.state.term;
    struct trace_entry entry = {.term = (uint32_t)act->state.term, .cause = cause};
    if (leads && lane->last.state.role == RAFT_LEADER && same) return;
    if (leads) {
        entry.type = TR_ELECTED;
        entry.arg = (uint64_t)(lane - p->lane);
    } else if (act->leader && !same) {
        entry.type = TR_FOLLOWS;
        entry.peer = p->lane[act->leader].pid;
    } else if (!act->leader && lane->last.leader) {
        entry.type = TR_LEADERLESS;
        entry.term = 0;
    } else {
        return;
    }
    add_entry(p, lane, entry);
}

static void show(struct servers_picture *p, struct lane *lane) {
    const struct act *act = &lane->act[lane->next++];
    uint32_t sending = act->received ? p->letter[act->received].match : NOTHING;
    if (lane->moment < act->since_ms) lane->moment = act->since_ms;
    if (sending && lane->moment < p->letter[sending].moment)
        lane->moment = p->letter[sending].moment;
    p->now_us += 1000;
    p->trace.event++;
    uint32_t event = show_event(p, lane, act);
    if (event) trace_state(&p->trace, event, &act->state, 0, 1);
    for (uint32_t i = 0; i < act->sent; i++)
        show_letter(p, lane, act->first_sent + i,
                    (struct trace_entry){.type = TR_SEND, .cause = event});
    if (act->type != ACT_END) show_leader(p, lane, act, event);
    lane->last = *act;
}

/* ---- The order ---- */

static bool may_come(const struct servers_picture *p, const struct act *act) {
    uint32_t sending = act->received ? p->letter[act->received].match : NOTHING;
    return !sending || p->letter[sending].entry || p->trace.full;
}

static uint64_t moment_of(const struct servers_picture *p, const struct lane *lane) {
    const struct act *act = &lane->act[lane->next];
    uint32_t sending = act->received ? p->letter[act->received].match : NOTHING;
    uint64_t moment = lane->moment < act->since_ms ? act->since_ms : lane->moment;
    return sending && moment < p->letter[sending].moment ? p->letter[sending].moment : moment;
}

/* Of what may come next: what is known to have begun first, then by its type, then who has done
 * least. */
static bool comes_before(const struct servers_picture *p, const struct lane *one,
                         const struct lane *other) {
    uint64_t moment = moment_of(p, one), other_moment = moment_of(p, other);
    enum act_type type = one->act[one->next].type, other_type = other->act[other->next].type;
    if (moment != other_moment) return moment < other_moment;
    return type != other_type ? type < other_type : one->next < other->next;
}

static struct lane *next_lane(struct servers_picture *p) {
    struct lane *best = NULL, *any = NULL;
    for (unsigned id = 0; id < IDS; id++) {
        struct lane *lane = &p->lane[id];
        if (lane->next == lane->count) continue;
        any = lane;
        if (may_come(p, &lane->act[lane->next]) && (!best || comes_before(p, lane, best)))
            best = lane;
    }
    return best ? best : any; /* records that do not fit together: an arrow may be missing */
}

/* Those whose records are there, and those that these have heard of.  A record may begin when a
 * leader has been followed for long. */
static void name_servers(struct servers_picture *p, struct sim_config *config) {
    bool known[IDS] = {false};
    for (size_t i = 1; i < p->letters; i++)
        known[p->letter[i].message.from] = known[p->letter[i].message.to] = true;
    for (unsigned id = 0; id < IDS; id++) {
        const struct lane *lane = &p->lane[id];
        if (lane->count) known[id] = true;
        for (size_t i = 0; i < lane->count; i++) {
            const struct act *act = &lane->act[i];
            if (act->leader) known[act->leader] = true;
            if (act->type == ACT_DOWN) known[act->about] = true;
        }
    }
    for (unsigned id = 0; id < IDS; id++) {
        if (!known[id]) continue;
        p->lane[id].pid = (cv_pid)++config->processes;
        snprintf(p->names[p->lane[id].pid], ROSTER_NAME_MAX, "server%d",
                 member_number((int32_t)id));
    }
    config->names = p->names;
}

void servers_picture_write(struct servers_picture *p, const char *violated,
                           enum trace_format format, uint64_t page, FILE *out) {
    struct sim_config config = {.first = 1};
    servers_describe(&p->description);
    config.algorithm = &p->description.algorithm;
    name_servers(p, &config);
    trace_open(&p->trace, &config);
    snprintf(p->trace.violated, sizeof p->trace.violated, "%s", violated);
    match_all(p);
    for (struct lane *lane; (lane = next_lane(p));) show(p, lane);
    trace_write(&p->trace, format, "raft", page, out);
}
