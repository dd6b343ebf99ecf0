/* ACLs as text: SCHEME:ID:PERMISSIONS, several parted by commas, as zkCli has them. */
#ifndef CV_CLI_ACL_TEXT_H
#define CV_CLI_ACL_TEXT_H

#include "cli/remote.h"

struct acl_text {
    char *copy;
    struct cv_acl *entries;
    size_t count, room;
};

/* 0, or EINVAL after one line. */
int acl_parse(struct acl_text *acl, const char *text);
/* A copy of what a server has said. */
void acl_copy(struct acl_text *acl, const struct cv_acl *entries, size_t count);
void acl_close(struct acl_text *acl);
/* cdrwa, or some of these. */
const char *acl_permissions(int32_t permissions, char text[8]);

#define ACL_HELP                                                                                   \
    "An ACL is SCHEME:ID:PERMISSIONS, several parted by commas; permissions are c(reate "          \
    "children), "                                                                                  \
    "d(elete children), r(ead), w(rite) and a(dminister).  'world:anyone:r' is everybody, "        \
    "'auth::cdrwa' whoever is asking now (--auth-file), 'digest:USER:HASH:cdrwa' a user, "         \
    "'ip:10.0.0.0/8:r' a network.\n"

#endif
