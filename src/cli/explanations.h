/* The opening comments of the algorithms and the scenarios, collected by scripts/explanations.awk.
 */
#ifndef CV_CLI_EXPLANATIONS_H
#define CV_CLI_EXPLANATIONS_H

struct explanation {
    const char *algorithm, *text;
    const char *portuguese; /* may be NULL */
};
struct shipped_scenario {
    const char *algorithm, *path, *title;
};

/* Both end with a row of NULLs. */
extern const struct explanation explanations[];
extern const struct shipped_scenario shipped_scenarios[];

#endif
