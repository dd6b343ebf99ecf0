/* Any bytes as a zoo.cfg: whatever is taken from it stays within its bounds.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -D_GNU_SOURCE -o fuzz_zoo_cfg \
 *       tests/fuzz/fuzz_zoo_cfg.c $(ls src/service/settings/?*.c) src/base/assert.c \
 *       src/base/parse.c -lm
 *   ./fuzz_zoo_cfg tests/fuzz/corpus/zoo_cfg */
#include <string.h>

#include "base/assert.h"
#include "service/settings/settings.h"

static void hear(void *context, bool failed, const char *text) {
    *(bool *)context |= failed;
    for (; *text; text++) cv_assert((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_text(const char *text, size_t room) {
    size_t size = strnlen(text, room);
    cv_assert(size < room);
    for (size_t i = 0; i < size; i++) cv_assert((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void check_addresses(const struct settings_addresses *addresses) {
    cv_assert(addresses->count <= SETTINGS_LISTEN_MAX);
    for (unsigned i = 0; i < addresses->count; i++) {
        const struct settings_address *address = &addresses->at[i];
        check_text(address->host, sizeof address->host);
        cv_assert(*address->host && address->port >= 0 && address->port <= UINT16_MAX);
    }
}

static void check_members(const struct member_list *list) {
    cv_assert(list->count <= MEMBER_LIST_MAX);
    for (unsigned i = 0; i < list->count; i++) {
        const struct member *member = &list->at[i];
        check_text(member->host, sizeof member->host);
        check_text(member->client.host, sizeof member->client.host);
        cv_assert(member->id >= 1 && member->id <= MEMBER_ID_MAX);
        cv_assert(member_list_find(list, member->id) == member); /* each is there once */
        cv_assert(!i || list->at[i - 1].id < member->id);
        cv_assert(member->weight >= 0);
        cv_assert(member->peer_port > 0 && member->election_port > 0 && *member->host);
    }
}

/* The members as text are read back as the same, and give the same text. */
static void check_text_of(const struct member_list *list) {
    struct member_list again = {0};
    struct bytes text = {0}, text_again = {0};
    char error[SETTINGS_ERROR_MAX];
    member_list_write(list, &text);
    cv_assert(member_list_parse(&again, (const char *)text.at, text.used, error, sizeof error));
    check_members(&again);
    member_list_write(&again, &text_again);
    cv_assert(again.count == list->count && text.used == text_again.used);
    cv_assert(!text.used || memcmp(text.at, text_again.at, text.used) == 0);
    bytes_close(&text);
    bytes_close(&text_again);
}

static void check(struct settings *s) {
    check_addresses(&s->clients);
    check_addresses(&s->tls);
    check_addresses(&s->http);
    check_members(&s->members);
    check_text_of(&s->members);
    check_text(s->data_dir, sizeof s->data_dir);
    check_text(s->log_dir, sizeof s->log_dir);
    check_text(s->words, sizeof s->words);
    check_text(s->super_digest, sizeof s->super_digest);
    check_text(s->tls_certificate, sizeof s->tls_certificate);
    check_text(s->tls_key, sizeof s->tls_key);
    check_text(s->tls_key_password, sizeof s->tls_key_password);
    check_text(s->tls_authorities, sizeof s->tls_authorities);
    cv_assert(s->tick_ms > 0 && s->packet_bytes_max > 0 && s->log_segment_bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct settings s;
    struct member_list list = {0};
    bool failed = false;
    char error[SETTINGS_ERROR_MAX];
    member_list_parse(&list, (const char *)bytes, size, error, sizeof error);
    check_members(&list);
    check_text_of(&list);
    settings_default(&s);
    int result = settings_parse(&s, "zoo.cfg", (const char *)bytes, size, hear, &failed);
    cv_assert((result != 0) == failed);
    check(&s);
    if (settings_settle(&s, error, sizeof error) != 0) return 0;
    check(&s);
    cv_assert(s.clients.count + s.tls.count > 0 && *s.data_dir && *s.log_dir);
    cv_assert(s.session_ms_min >= 0 && s.session_ms_min <= s.session_ms_max);
    cv_assert(s.client_auth != SETTINGS_AUTH_UNSET);
    settings_allows(&s, "ruok");
    return 0;
}
