/* A trace as text: time, process, event, and the state after it. */
#include "lab/sim/trace.h"
#include "language/language.h"

void trace_describe(const struct trace *trace, size_t index, FILE *out) {
    const struct trace_entry *entry = &trace->entry[index];
    char name[ROSTER_NAME_MAX], peer[ROSTER_NAME_MAX], message[256];
    roster_name(&trace->roster, entry->process, name);
    roster_name(&trace->roster, entry->peer, peer);
    switch (entry->type) {
    case TR_START: fprintf(out, _("%s starts"), name); break;
    case TR_ASK: fprintf(out, _("%s wants the lock"), name); break;
    case TR_DONE: fprintf(out, _("%s is done with the lock"), name); break;
    case TR_CAMPAIGN: fprintf(out, _("%s wants an election"), name); break;
    case TR_ELECTED:
        fprintf(out, _("  %s LEADS"), name);
        if (entry->term) fprintf(out, _(" in term %u"), entry->term);
        break;
    case TR_FOLLOWS:
        if (entry->peer)
            fprintf(out, _("  %s follows %s"), name, peer);
        else
            fprintf(out, _("  %s knows that there is a leader"), name);
        if (entry->term) fprintf(out, _(" in term %u"), entry->term);
        break;
    case TR_LEADERLESS: fprintf(out, _("  %s has no leader any more"), name); break;
    case TR_SEND:
        fprintf(out, "  %s -> %s  %s", name, peer,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_RECEIVE:
        fprintf(out, "%s <- %s  %s", name, peer,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_LOST:
        fprintf(out, _("%s -> %s  %s is LOST"), peer, name,
                trace_message(trace, entry, message, sizeof message));
        break;
    case TR_TIMER: fprintf(out, _("%s: its timer runs out"), name); break;
    case TR_CHOICE: fprintf(out, _("%s draws %llu"), name, (unsigned long long)entry->arg); break;
    case TR_ENTER:
        fprintf(out, _("  %s ENTERS"), name);
        if (entry->arg) fprintf(out, _(" with fencing token %llu"), (unsigned long long)entry->arg);
        break;
    case TR_LEAVE: fprintf(out, _("  %s LEAVES"), name); break;
    case TR_WRITE:
        fprintf(out, _("  %s writes with token %llu: taken"), name, (unsigned long long)entry->arg);
        break;
    case TR_REFUSED:
        fprintf(out, _("  %s writes with token %llu: REFUSED, it is older than one already seen"),
                name, (unsigned long long)entry->arg);
        break;
    case TR_CRASH: fprintf(out, _("%s CRASHES"), name); break;
    case TR_RECOVER:
        fprintf(out,
                entry->arg ? _("%s RECOVERS and has forgotten everything")
                           : _("%s RECOVERS with what it had saved"),
                name);
        break;
    case TR_PAUSE: fprintf(out, _("%s PAUSES"), name); break;
    case TR_RESUME: fprintf(out, _("%s runs on"), name); break;
    case TR_SUSPECT: fprintf(out, _("%s suspects that %s is down"), name, peer); break;
    case TR_TRUST: fprintf(out, _("%s trusts %s again"), name, peer); break;
    case TR_PARTITION:
        fprintf(out, _("the network SPLITS: %s"),
                trace_sides(trace, entry, message, sizeof message));
        break;
    case TR_HEAL: fprintf(out, _("the network heals")); break;
    case TR_NONE: break;
    }
}

void trace_write_entry(const struct trace *trace, size_t index, FILE *out) {
    const struct trace_entry *entry = &trace->entry[index];
    fprintf(out, "%12.3f ms  ", (double)entry->time_us / 1e3);
    trace_describe(trace, index, out);
    if (entry->note) fprintf(out, "   [%s]", trace->text + entry->note);
    fputc('\n', out);
}

void trace_write_text(const struct trace *trace, FILE *out) {
    if (trace->left_out)
        fprintf(out, _("... %zu entries that led to these are left out\n"), trace->left_out);
    for (size_t i = 1; i < trace->count; i++)
        if (trace_shows(trace, i)) trace_write_entry(trace, i, out);
    if (trace->left_later)
        fprintf(out, _("... %zu more entries are left out\n"), trace->left_later);
    if (trace->full)
        fprintf(out, _("... and more: the trace ends after %d entries\n"), TRACE_ENTRIES_MAX);
}
