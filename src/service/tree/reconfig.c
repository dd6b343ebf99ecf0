/* Changes of the members: what they are to become is a part of the tree, so every server knows it,
 * also one that starts from its files or from another server's snapshot. */
#include <stdio.h>
#include <stdlib.h>

#include "service/settings/member_list.h"
#include "service/tree/internal.h"

static const char VERSION[] = "\nversion=";

void tree_forget_members(struct tree *tree) {
    struct zk_text path = zk_text_of("/zookeeper/config");
    node_id id = tree_find(tree, path);
    tree->target.used = 0;
    tree_forget_events(tree);
    change_data(tree, id, path, zk_text_of(""), tree->zxid, tree->node[id].mtime);
    changes_keep(tree);
    tree_forget_events(tree);
}

static struct zk_text config_of(const struct tree *tree) {
    return node_data(&tree->node[tree_find(tree, zk_text_of("/zookeeper/config"))]);
}

struct zk_text tree_members_text(const struct tree *tree) {
    struct zk_text text = config_of(tree);
    tree_take_versions(&text); /* in a snapshot of an older server there may be some */
    const char *end =
        text.size > 0 ? memmem(text.at, (size_t)text.size, VERSION, sizeof VERSION - 1) : NULL;
    return (struct zk_text){text.at, end ? (int32_t)(end - text.at) : 0};
}

int64_t tree_members_version(const struct tree *tree) {
    struct zk_text text = tree_members_text(tree), data = config_of(tree);
    char digits[17] = "";
    if (!text.size) return 0;
    const char *from = text.at + text.size + sizeof VERSION - 1;
    size_t left = (size_t)(data.at + data.size - from);
    memcpy(digits, from, left < sizeof digits ? left : sizeof digits - 1);
    return (int64_t)strtoull(digits, NULL, 16);
}

int64_t tree_members_zxid(const struct tree *tree) {
    return tree->node[tree_find(tree, zk_text_of("/zookeeper/config"))].mzxid;
}

static struct zk_text target_of(const struct tree *tree) {
    return (struct zk_text){(const char *)tree->target.at, (int32_t)tree->target.used};
}

static bool add_lines(struct member_list *list, struct zk_text lines, char *why, size_t size) {
    return lines.size <= 0 || member_list_parse(list, lines.at, (size_t)lines.size, why, size);
}

/* Whether a line that joins has no number where ZooKeeper reads one: after the last dot of its key.
 * For that, and for no other argument, ZooKeeper's error is MARSHALLINGERROR. */
static bool has_unnumbered_line(struct zk_text lines) {
    const char *end = lines.at + (lines.size > 0 ? lines.size : 0);
    for (const char *at = lines.at; at < end; at++) {
        const char *number = at;
        bool is_key = true;
        for (; at < end && *at != ',' && *at != '\n'; at++) {
            if (is_key && *at == '.') number = at + 1;
            if (is_key && *at == '=' && (number == at || *number < '0' || *number > '9'))
                return true;
            is_key &= *at != '=';
        }
    }
    return false;
}

/* Numbers that no member has are passed over. */
static bool remove_members(struct member_list *from, struct zk_text numbers) {
    enum { DIGITS_MAX = 18 };
    const char *end = numbers.at + (numbers.size > 0 ? numbers.size : 0);
    for (const char *at = numbers.at; at < end; at++) {
        int64_t number = 0;
        bool negative = *at == '-';
        const char *digits = at += negative;
        for (; at < end && *at >= '0' && *at <= '9' && at - digits <= DIGITS_MAX; at++)
            number = 10 * number + (*at - '0');
        if (at < end && *at != ',' && *at != ' ') return false;
        if ((negative && at == digits) || at - digits > DIGITS_MAX) return false;
        if (at > digits && !negative && number <= MEMBER_NUMBER_MAX)
            member_list_remove(from, member_id((int32_t)number));
    }
    return true;
}

static bool has_groups(const struct member_list *list) {
    for (unsigned i = 1; i < list->count; i++)
        if (list->at[i].group != list->at[0].group) return true;
    return false;
}

static bool has_voter(const struct member_list *list) {
    for (unsigned i = 0; i < list->count; i++)
        if (!list->at[i].observer && list->at[i].weight) return true;
    return false;
}

int32_t tree_plan_members(struct zk_text from, const struct zk_reconfig_request *request,
                          struct bytes *target, char *why, size_t size) {
    struct member_list list = {0}, before;
    add_lines(&list, from, why, size);
    before = list;
    snprintf(why, size, "the members to remove are not numbers with commas between them");
    if (request->members.size > 0) { /* the rest of the request does not count */
        list = (struct member_list){0};
        if (!add_lines(&list, request->members, why, size)) return ZK_BADARGUMENTS;
    } else if (!remove_members(&list, request->leaving)) {
        return ZK_MARSHALLINGERROR;
    } else if (!add_lines(&list, request->joining, why, size)) {
        return has_unnumbered_line(request->joining) ? ZK_MARSHALLINGERROR : ZK_BADARGUMENTS;
    }
    member_list_take_ids(&list, &before);
    snprintf(why, size, "the ids of the ensemble and of data directories cannot be changed");
    if (!member_list_same_ids(&list, &before)) return ZK_BADARGUMENTS;
    if (!member_list_is_ensemble(&list, why, size)) return ZK_BADARGUMENTS;
    snprintf(why, size, "the members are in groups, and such members cannot be changed");
    if (has_groups(&before) || has_groups(&list)) return ZK_BADARGUMENTS;
    snprintf(why, size, "no member would have a vote");
    if (!has_voter(&list))
        return request->members.size > 0 ? ZK_MARSHALLINGERROR : ZK_NEWCONFIGNOQUORUM;
    member_list_write(&list, target);
    return ZK_OK;
}

static bool asks_for_nothing(const struct zk_reconfig_request *request) {
    return request->members.size <= 0 && request->joining.size <= 0 && request->leaving.size <= 0;
}

/* What the members are to become from what they are to become by now. */
static int32_t plan(const struct tree *tree, const struct zk_reconfig_request *request,
                    struct bytes *target) {
    char why[256];
    struct zk_text from = tree->target.used ? target_of(tree) : tree_members_text(tree);
    if (asks_for_nothing(request)) return ZK_OK;
    return tree_plan_members(from, request, target, why, sizeof why);
}

int32_t tree_judge_reconfig(const struct tree *tree, const struct zk_reconfig_request *request) {
    struct bytes target = {0};
    int32_t err = plan(tree, request, &target);
    bytes_close(&target);
    return err;
}

int32_t tree_reconfigure(struct tree *tree, const struct zk_reconfig_request *request) {
    struct zk_text now = tree_members_text(tree);
    struct bytes target = {0};
    int32_t err = plan(tree, request, &target);
    bool changes_nothing = target.used == (size_t)now.size &&
                           (!now.size || memcmp(target.at, now.at, target.used) == 0);
    if (!err) tree->target.used = 0;
    if (!err && !changes_nothing) bytes_add(&tree->target, target.at, target.used);
    bytes_close(&target);
    return err;
}
