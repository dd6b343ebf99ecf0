/* What the node of a slot says (conclave once): who runs it, since when, and how it ended. */
#ifndef CV_CLI_ONCE_RECORD_H
#define CV_CLI_ONCE_RECORD_H

#include <conclave.h>
#include <jansson.h>
#include <stdio.h>

struct once_record {
    char id[33]; /* of this run */
    char label[256], host[256];
    int64_t pid;
    int64_t since, ended; /* wall clock, ms; 0: not yet */
    int status;
    bool retry; /* others may run it again when its runner is gone */
};

int64_t once_now(void);
void once_record_begin(struct once_record *record, const char *label, bool retry);
/* JSON, to be freed. */
char *once_record_write(const struct once_record *record);
/* What is missing in the text, or not what it should be, is empty. */
void once_record_read(struct once_record *record, const void *text, size_t size);
json_t *once_record_json(const struct once_record *record);
/* "was run by ... from ... to ..., exit status 0" */
void once_record_say(const struct once_record *record, bool alive, FILE *out);

/* Deletes the oldest slots of a folder, but for `slot` and those that are being run, so that `keep`
 * are left. */
void once_prune(struct cv_client *client, const char *folder, const char *slot, int keep);

#endif
