/* Who is meant by the id of a leader: pictures call processes by their names. */
#include "sim/trace_svg.h"

uint64_t *leader_ids(const struct trace *trace) {
    uint64_t *ids = layout_array(trace->roster.processes, sizeof *ids);
    for (size_t i = 1; i < trace->count; i++)
        if (trace->entry[i].type == TR_ELECTED) ids[trace->entry[i].process] = trace->entry[i].arg;
    return ids;
}

char *leader_name(const struct roster *roster, const uint64_t *ids, uint64_t id,
                  char buffer[ROSTER_NAME_MAX]) {
    cv_pid found = CV_NOBODY;
    uint32_t bearers = 0;
    for (cv_pid p = 1; p <= roster->processes; p++)
        if (ids[p] == id) found = p, bearers++;
    if (bearers == 1) return roster_name(roster, found, buffer);
    snprintf(buffer, ROSTER_NAME_MAX, "id %llu", (unsigned long long)id);
    return buffer;
}

const char *number_word(uint32_t number, char buffer[NUMBER_WORD_MAX]) {
    static const char *const words[] = {"none", "one", "two", "three", "four", "five"};
    if (number < sizeof words / sizeof words[0]) return words[number];
    snprintf(buffer, NUMBER_WORD_MAX, "%u", number);
    return buffer;
}
