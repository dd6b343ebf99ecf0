/* The museum: faults of consensus and of locks that were published, as edits of our own sources.
 * The texts are those of museum/, as scripts/museum.awk has written them. */
#ifndef CV_CLI_MUSEUM_H
#define CV_CLI_MUSEUM_H

struct exhibit {
    const char *name, *title;
    const char *room;      /* of the museum */
    const char *reference; /* where the fault was published */
    const char *story;
    const char *file, *edit; /* a sed expression that puts the fault into that source; or "" */
    const char *run;         /* the command that finds the fault, with what is edited */
    const char *sound;       /* what finds nothing; "": the same command, with what is not edited */
    const char *says;        /* the sentence of the judge that is part of what `run` prints */
    const char *mended;      /* what mends it */
    const char *page;        /* of the picture, where the fault is seen; "": the first */
};
extern const struct exhibit exhibits[]; /* the last one has no name */

#endif
