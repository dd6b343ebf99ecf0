/* A trace as lines to read: when, who, what, and behind it what the state became. */
#include "sim/trace.h"

static void describe(const struct trace *trace, const struct trace_entry *entry, FILE *out) {
    char name[ROSTER_NAME_MAX], peer[ROSTER_NAME_MAX], message[256];
    roster_name(&trace->roster, entry->process, name);
    roster_name(&trace->roster, entry->peer, peer);
    switch (entry->type) {
    case TR_START: fprintf(out, "%s starts", name); break;
    case TR_ASK: fprintf(out, "%s wants the lock", name); break;
    case TR_DONE: fprintf(out, "%s is done with the lock", name); break;
    case TR_CAMPAIGN: fprintf(out, "%s wants an election", name); break;
    case TR_ELECTED:
        fprintf(out, "  %s LEADS", name);
        if (entry->term) fprintf(out, " in term %u", entry->term);
        break;
    case TR_FOLLOWS:
        if (entry->peer)
            fprintf(out, "  %s follows %s", name, peer);
        else
            fprintf(out, "  %s knows that there is a leader", name);
        if (entry->term) fprintf(out, " in term %u", entry->term);
        break;
    case TR_LEADERLESS: fprintf(out, "  %s has no leader any more", name); break;
    case TR_SEND:
        fprintf(out, "  %s -> %s  %s", name, peer,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_RECEIVE:
        fprintf(out, "%s <- %s  %s", name, peer,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_LOST:
        fprintf(out, "%s -> %s  %s is LOST", peer, name,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_TIMER: fprintf(out, "%s: its timer runs out", name); break;
    case TR_CHOICE: fprintf(out, "%s draws %llu", name, (unsigned long long)entry->arg); break;
    case TR_ENTER:
        fprintf(out, "  %s ENTERS", name);
        if (entry->arg) fprintf(out, " with fencing token %llu", (unsigned long long)entry->arg);
        break;
    case TR_LEAVE: fprintf(out, "  %s LEAVES", name); break;
    case TR_WRITE:
        fprintf(out, "  %s writes with token %llu: taken", name, (unsigned long long)entry->arg);
        break;
    case TR_REFUSED:
        fprintf(out, "  %s writes with token %llu: REFUSED, it is older than one already seen",
                name, (unsigned long long)entry->arg);
        break;
    case TR_CRASH: fprintf(out, "%s CRASHES", name); break;
    case TR_RECOVER:
        fprintf(out, "%s RECOVERS %s", name,
                entry->arg ? "and has forgotten everything" : "with what it had saved");
        break;
    case TR_PAUSE: fprintf(out, "%s PAUSES", name); break;
    case TR_RESUME: fprintf(out, "%s runs on", name); break;
    case TR_SUSPECT: fprintf(out, "%s suspects that %s is down", name, peer); break;
    case TR_TRUST: fprintf(out, "%s trusts %s again", name, peer); break;
    case TR_PARTITION: fprintf(out, "the network SPLITS"); break;
    case TR_HEAL: fprintf(out, "the network heals"); break;
    case TR_NONE: break;
    }
}

void trace_write_text(const struct trace *trace, FILE *out) {
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (!trace_shows(trace, i)) continue;
        fprintf(out, "%12.3f ms  ", (double)entry->time_us / 1e3);
        describe(trace, entry, out);
        if (entry->note) fprintf(out, "   [%s]", trace->text + entry->note);
        fputc('\n', out);
    }
    if (trace->full)
        fprintf(out, "... and more: the trace ends after %d entries\n", TRACE_ENTRIES_MAX);
}
