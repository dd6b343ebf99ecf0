/* The files of examples/own, collected by scripts/skeletons.awk. */
#ifndef CV_CLI_SKELETONS_H
#define CV_CLI_SKELETONS_H

struct skeleton {
    const char *name, *text;
};

/* It ends with a row of NULLs. */
extern const struct skeleton skeletons[];

#endif
