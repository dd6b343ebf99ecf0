/* What the sources say of themselves, gathered when the program is built. */
#ifndef CV_CLI_EXPLANATIONS_H
#define CV_CLI_EXPLANATIONS_H

struct explanation {
    const char *algorithm, *text;
};
struct shipped_scenario {
    const char *algorithm, *path, *title;
};

/* Both end with a row of NULLs. */
extern const struct explanation explanations[];
extern const struct shipped_scenario shipped_scenarios[];

#endif
