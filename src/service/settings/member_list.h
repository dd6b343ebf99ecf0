/* The members of an ensemble, as a zoo.cfg and ZooKeeper's dynamic configuration name them:
 *
 *   server.N=host:peer port:election port[:role][;[client host:]client port]
 *   group.N=id:id:id
 *   weight.N=W
 *
 * and, in the configuration of a running ensemble, as ZooKeeper does not have it:
 *
 *   directory.N=id     of the data directory that the member came with (hexadecimal)
 *   ensemble=id        the same for all members, random, made by the first leader (hexadecimal)
 *
 * Lines may come in any order, except that directory.N follows server.N; a later one replaces an
 * earlier one of the same key.  A line version=N, as /zookeeper/config ends with, says nothing.  A
 * list that is all zero is empty. */
#ifndef CV_SERVICE_SETTINGS_MEMBER_LIST_H
#define CV_SERVICE_SETTINGS_MEMBER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/member_id.h"
#include "service/settings/address.h"

enum {
    /* More than an ensemble can have, as new members are added to a list before old ones leave. */
    MEMBER_LIST_MAX = 32,
    MEMBERS_MAX = 16, /* of an ensemble */
};

struct member {
    int32_t id;
    char host[SETTINGS_HOST_MAX];
    int32_t peer_port, election_port;
    bool observer;
    struct settings_address client; /* port 0: not given */
    uint8_t group;                  /* 0: in none */
    int32_t weight;                 /* 1 unless given */
    uint32_t directory;             /* 0: not known yet */
};

struct member_list {
    unsigned count;
    uint64_t ensemble;                 /* 0: not known yet */
    struct member at[MEMBER_LIST_MAX]; /* in the order of ids */
    /* By id: the group and weight of servers without a server.N line so far. */
    struct {
        uint8_t group;
        bool has_weight;
        int32_t weight;
    } unnamed[MEMBER_ID_MAX + 1];
};

/* Applies one line.  False: it is refused, the list is as it was, and `error` says why. */
bool member_list_set(struct member_list *list, const char *key, const char *value, char *error,
                     size_t size);

/* Applies lines, with newlines or commas between them.  False: `error` says why one is refused;
 * those before it are applied. */
bool member_list_parse(struct member_list *list, const char *text, size_t size, char *error,
                       size_t error_size);

/* Adds what --ensemble takes: "1=host:port,2=host:port:observer".  One port serves elections and
 * everything else.  False: as member_list_set. */
bool member_list_parse_short(struct member_list *list, const char *text, char *error, size_t size);

/* NULL: no member has that id. */
const struct member *member_list_find(const struct member_list *list, int32_t id);

/* Adds a member, or replaces the one of that id.  False: there is no room. */
bool member_list_put(struct member_list *list, const struct member *member);

/* False: there is no such member. */
bool member_list_remove(struct member_list *list, int32_t id);

/* Whether these can be the members of an ensemble; false: `why` says why not. */
bool member_list_is_ensemble(const struct member_list *list, char *why, size_t size);

/* Takes the ids of the ensemble and of its members' directories from another list, for members that
 * are in both and have none. */
void member_list_take_ids(struct member_list *list, const struct member_list *from);

/* Whether both lists have the same ids. */
bool member_list_same_ids(const struct member_list *list, const struct member_list *as);

/* Replaces `text` by the canonical one: equal lists give equal bytes.  Servers without a server.N
 * line are left out. */
void member_list_write(const struct member_list *list, struct bytes *text);

#endif
