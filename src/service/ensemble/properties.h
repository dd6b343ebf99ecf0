/* Java's properties, the form in which ZooKeeper reads a list of members: lines of a key and a
 * value, with comments, continued lines and escapes. */
#ifndef CV_SERVICE_ENSEMBLE_PROPERTIES_H
#define CV_SERVICE_ENSEMBLE_PROPERTIES_H

#include "wire/zk/zk.h"

struct properties {      /* only `rest` is set at first */
    struct zk_text rest; /* what is not read yet; a comma in it is a newline, as in ZooKeeper */
    struct bytes line, key, value;
};

enum properties_found {
    PROPERTIES_END,
    PROPERTIES_ONE,
    PROPERTIES_BROKEN, /* an escape that means nothing */
};

/* Reads the next key and value. */
enum properties_found properties_next(struct properties *properties);
void properties_close(struct properties *properties);

#endif
