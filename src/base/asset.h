/* Files that are a part of the program, for a browser: scripts/pages.awk makes tables of them. */
#ifndef CV_BASE_ASSET_H
#define CV_BASE_ASSET_H

struct asset {                          /* the last of a table has no name */
    const char *name, *type, *encoding; /* encoding: "gzip", or NULL */
    const unsigned char *begin, *end;
};

#endif
