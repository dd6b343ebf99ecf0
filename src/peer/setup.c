#include "peer/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "algorithms/detectors.h"
#include "base/secret.h"

enum { HEARTBEAT_US = 100000, HEARTBEAT_MIN_US = 4000 };

void peer_setup_init(struct peer_setup *setup, const struct cv_algorithm *algorithm) {
    *setup = (struct peer_setup){.config.detector_option[DETECTOR_INTERVAL] = HEARTBEAT_US};
    group_init(&setup->group, algorithm);
}

bool peer_setup_heartbeat(struct peer_setup *setup, uint64_t us) {
    setup->config.detector_option[DETECTOR_INTERVAL] = us;
    return us >= HEARTBEAT_MIN_US;
}

bool peer_setup_detector(struct peer_setup *setup, const char *text) {
    struct peer_config *config = &setup->config;
    setup->detector_given = true;
    config->detector = detector_parse(text, &config->detector_option[DETECTOR_LIMIT]);
    return config->detector || strcmp(text, "none") == 0;
}

static int fail(char *error, const char *what, const char *why) {
    snprintf(error, PEER_ERROR_MAX, "%.200s%.400s", what, why);
    return SETUP_WRONG;
}

static int choose_credentials(struct peer_setup *setup, char *error) {
    struct peer_credentials *given = &setup->credentials;
    bool any = given->certificate || given->certificate_key || given->authorities;
    if (given->key && any) return fail(error, "either a key or certificates", "");
    if (setup->config.insecure && (given->key || any))
        return fail(error, "either a key or certificates, or none of them (--insecure)", "");
    if (any && !(given->certificate && given->certificate_key && given->authorities))
        return fail(error, "a certificate, its private key and the authority go together", "");
    if (given->key || any || setup->config.insecure) return 0;
    if (!peer_is_local(&setup->group))
        return fail(error, "peers on other machines need a key (--key FILE, see conclave key) or ",
                    "certificates: without, whoever reaches their ports is believed (--insecure)");
    cv_assert(asprintf(&setup->own_key, "%s.key", setup->peers) > 0);
    given->key = setup->own_key;
    if (access(given->key, F_OK) == 0 || errno != ENOENT) return 0; /* who reads it will see */
    int failed = secret_make(given->key);
    if (!failed || failed == EEXIST) return 0;
    snprintf(error, PEER_ERROR_MAX,
             "no key can be made beside the list (give --key FILE): %.400s: %s", setup->own_key,
             strerror(failed));
    return SETUP_SYSTEM;
}

int peer_setup_settle(struct peer_setup *setup, char error[PEER_ERROR_MAX]) {
    struct peer_config *config = &setup->config;
    const struct cv_algorithm *code = setup->group.algorithm;
    char why[GROUP_ERROR_MAX];
    if (group_read(&setup->group, setup->peers, why) != 0) return fail(error, "", why);
    config->group = &setup->group;
    if (!config->self || config->self > setup->group.processes) {
        snprintf(error, PEER_ERROR_MAX, "id: %.400s has no peer %u", setup->peers, config->self);
        return SETUP_WRONG;
    }
    bool of_use = code->problem == CV_ELECTION || code->traits & CV_USES_DETECTOR;
    if (!setup->detector_given && of_use) peer_setup_detector(setup, "fixed:1s");
    if (config->detector && !of_use)
        return fail(error, code->name, " does not use a failure detector");
    if (!config->data) { /* wherever it is started from */
        const char *slash = strrchr(setup->peers, '/');
        int above = slash ? (int)(slash - setup->peers) + 1 : 0;
        cv_assert(asprintf(&setup->own_data, "%.*sconclave-peer-%u", above, setup->peers,
                           config->self) > 0);
        config->data = setup->own_data;
    }
    return choose_credentials(setup, error);
}

void peer_setup_free(struct peer_setup *setup) {
    group_free(&setup->group);
    free(setup->own_key);
    free(setup->own_data);
}
