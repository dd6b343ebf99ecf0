/* The settings of a server: defaults, keys, the files they come from, and what is wrong in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "service/settings/settings.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- Help ---- */

struct heard {
    char text[4096]; /* "error TEXT\n" or "note TEXT\n", for each report */
};

static void hear(void *context, bool failed, const char *text) {
    struct heard *heard = context;
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "%s %s\n", failed ? "error" : "note",
             text);
}

/* The text at the end of a block of its own, so that a sanitizer sees who reads beyond it. */
static int parse_bytes_of(struct settings *s, const char *text, size_t size, struct heard *heard) {
    char *block = malloc(size + 1);
    assert_non_null(block);
    memcpy(block + 1, text, size);
    *heard = (struct heard){0};
    int failed = settings_parse(s, "zoo.cfg", block + 1, size, hear, heard);
    free(block);
    return failed;
}

/* Settings of which nothing is to be said. */
static struct settings parsed(const char *text) {
    struct settings s;
    struct heard heard;
    settings_default(&s);
    if (parse_bytes_of(&s, text, strlen(text), &heard) != 0 || *heard.text)
        fail_msg("%s\n%s", text, heard.text);
    return s;
}

static struct settings settled(const char *text) {
    struct settings s = parsed(text);
    char error[SETTINGS_ERROR_MAX] = "";
    if (settings_settle(&s, error, sizeof error) != 0) fail_msg("%s\n%s", text, error);
    return s;
}

/* What is said about the text, and whether it fails. */
static void says(const char *text, int result, const char *expected) {
    struct settings s;
    struct heard heard;
    settings_default(&s);
    assert_int_equal(parse_bytes_of(&s, text, strlen(text), &heard), result);
    assert_string_equal(heard.text, expected);
}

static void will_not_settle(const char *text, const char *part) {
    struct settings s = parsed(text);
    char error[SETTINGS_ERROR_MAX] = "";
    assert_int_equal(settings_settle(&s, error, sizeof error), -1);
    if (!strstr(error, part)) fail_msg("%s\n%s", text, error);
}

static void expect_listeners(const struct settings_addresses *addresses, const char *expected) {
    char text[SETTINGS_LISTEN_MAX * (SETTINGS_HOST_MAX + 8)] = "";
    for (unsigned i = 0; i < addresses->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %d", i ? ", " : "",
                 addresses->at[i].host, addresses->at[i].port);
    assert_string_equal(text, expected);
}

static void note_warning(void *context, const char *what, const char *key) {
    char *text = context;
    assert_true(strlen(what) > 20);
    snprintf(text + strlen(text), 256 - strlen(text), "%s%s", *text ? " " : "", key);
}

static void expect_doubts(const char *text, const char *expected) {
    struct settings s = settled(text);
    char found[256] = "";
    settings_doubts(&s, note_warning, found);
    if (strcmp(found, expected) != 0) fail_msg("%s\n%s", text, found);
}

/* ---- Defaults ---- */

static void defaults_are_as_documented(void **state) {
    struct settings s = settled("");
    (void)state;
    expect_listeners(&s.clients, "127.0.0.1 2181");
    expect_listeners(&s.tls, "");
    expect_listeners(&s.http, "127.0.0.1 8080");
    assert_false(s.same_port);
    assert_int_equal(s.backlog, -1);
    assert_string_equal(s.data_dir, "conclave-data");
    assert_string_equal(s.log_dir, "conclave-data");
    assert_int_equal(s.tick_ms, 2000);
    assert_int_equal(s.session_ms_min, 4000);
    assert_int_equal(s.session_ms_max, 40000);
    assert_int_equal(s.connections_per_address_max, 60);
    assert_int_equal(s.connections_max, 0);
    assert_int_equal(s.outstanding_max, 1000);
    assert_int_equal(s.packet_bytes_max, 1048575);
    assert_true(s.extended_types);
    assert_false(s.enforce_quota || s.skip_acl || s.read_only_mode);
    assert_string_equal(s.super_digest, "");
    assert_int_equal(s.container_check_ms, 60000);
    assert_int_equal(s.container_never_used_ms, 0);
    assert_int_equal(s.snapshot_count, 100000);
    assert_int_equal(s.snapshots_kept, 3);
    assert_int_equal(s.log_segment_bytes, 65536 * 1024);
    assert_true(s.force_sync);
    assert_int_equal(s.sync_warning_ms, 1000);
    assert_int_equal(s.client_auth, SETTINGS_AUTH_NONE);
    assert_int_equal(s.log_level, LOGGER_INFO);
    assert_int_equal(s.log_format, LOGGER_FORMAT_TEXT);
    assert_int_equal(s.server_id, -1);
    assert_int_equal(s.members.count, 0);
}

/* ---- Values ---- */

static void every_number_is_taken(void **state) {
    static const struct {
        const char *key;
        size_t offset;
    } of[] = {
        {"tickTime", offsetof(struct settings, tick_ms)},
        {"minSessionTimeout", offsetof(struct settings, session_ms_min)},
        {"maxSessionTimeout", offsetof(struct settings, session_ms_max)},
        {"maxClientCnxns", offsetof(struct settings, connections_per_address_max)},
        {"maxCnxns", offsetof(struct settings, connections_max)},
        {"globalOutstandingLimit", offsetof(struct settings, outstanding_max)},
        {"jute.maxbuffer", offsetof(struct settings, packet_bytes_max)},
        {"clientPortListenBacklog", offsetof(struct settings, backlog)},
        {"znode.container.checkIntervalMs", offsetof(struct settings, container_check_ms)},
        {"snapCount", offsetof(struct settings, snapshot_count)},
        {"autopurge.snapRetainCount", offsetof(struct settings, snapshots_kept)},
        {"fsync.warningthresholdms", offsetof(struct settings, sync_warning_ms)},
        {"ensemble.electionTimeoutMs", offsetof(struct settings, election_timeout_ms)},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        for (int prefix = 0; prefix < 2; prefix++) {
            char line[128];
            snprintf(line, sizeof line, "%s%s=%zu", prefix ? "zookeeper." : "", of[i].key,
                     54321 + i);
            struct settings s = parsed(line);
            int32_t value;
            memcpy(&value, (char *)&s + of[i].offset, sizeof value);
            if ((size_t)value != 54321 + i) fail_msg("%s gives %d", line, value);
        }
    }
}

static void every_other_value_is_taken(void **state) {
    struct settings s = parsed("dataDir=/a\ndataLogDir=/b c\n4lw.commands.whitelist=ruok\n"
                               "extendedTypesEnabled=False\nenforceQuota=true\nskipACL=yes\n"
                               "readonlymode.enabled=true\npreAllocSize=128\nforceSync=no\n"
                               "DigestAuthenticationProvider.superDigest=super:xyz=\nmyid=7\n"
                               "client.portUnification=true\nstandaloneEnabled=false\n"
                               "jute.maxbuffer=0xfffff\nlog.level=debug\nlog.format=json");
    (void)state;
    assert_string_equal(s.data_dir, "/a");
    assert_string_equal(s.log_dir, "/b c");
    assert_string_equal(s.words, "ruok");
    assert_false(s.extended_types);
    assert_true(s.enforce_quota);
    assert_true(s.skip_acl);
    assert_true(s.read_only_mode);
    assert_int_equal(s.log_segment_bytes, 131072);
    assert_false(s.force_sync);
    assert_string_equal(s.super_digest, "super:xyz=");
    assert_int_equal(s.server_id, 7);
    assert_true(s.same_port);
    assert_false(s.standalone);
    assert_int_equal(s.packet_bytes_max, 0xfffff);
    assert_int_equal(s.log_level, LOGGER_DEBUG);
    assert_int_equal(s.log_format, LOGGER_FORMAT_JSON);
}

static void sessions_follow_the_tick_wherever_it_stands(void **state) {
    struct settings s = settled("minSessionTimeout=-1\ntickTime=100\n");
    (void)state;
    assert_int_equal(s.session_ms_min, 200);
    assert_int_equal(s.session_ms_max, 2000);
    s = settled("minSessionTimeout=50\nmaxSessionTimeout=2001\ntickTime=100\n");
    assert_int_equal(s.session_ms_min, 50);
    assert_int_equal(s.session_ms_max, 2001);
    s = settled("minSessionTimeout=0\nmaxSessionTimeout=0");
    assert_int_equal(s.session_ms_min, 0);
    assert_int_equal(s.session_ms_max, 0);
    s = settled("tickTime=100000000\n");
    assert_int_equal(s.session_ms_max, 2000000000);
    will_not_settle("minSessionTimeout=9000\nmaxSessionTimeout=8000",
                    "minSessionTimeout, 9000 ms, is longer than maxSessionTimeout, 8000 ms");
}

static void bad_values_are_named(void **state) {
    static const struct {
        const char *line, *why;
    } of[] = {
        {"tickTime=0", "tickTime: '0' is not a whole number from 1 to 100000000"},
        {"tickTime=", "tickTime: '' is not a whole number from 1 to 100000000"},
        {"tickTime=2s", "tickTime: '2s' is not a whole number from 1 to 100000000"},
        {"tickTime=99999999999", "tickTime: '99999999999' is not a whole number from 1 to "
                                 "100000000"},
        {"minSessionTimeout=-2", "minSessionTimeout: '-2' is not a whole number from -1 to "
                                 "2147483647"},
        {"jute.maxbuffer=15728641", "jute.maxbuffer: '15728641' is not a whole number from 1024 to "
                                    "15728640"},
        {"clientPort=65536", "clientPort: '65536' is not a whole number from 0 to 65535"},
        {"enforceQuota=yes", "enforceQuota: 'yes' is not true or false"},
        {"zookeeper.skipACL=true", "skipACL: 'true' is not yes or no"},
        {"ssl.clientAuth=maybe", "ssl.clientAuth: 'maybe' is not need, want or none"},
        {"ssl.keyStore.type=JKS", "ssl.keyStore.type: 'JKS' is not PEM: stores of other types "
                                  "cannot be read"},
        {"sessionRequireClientSASLAuth=true", "sessionRequireClientSASLAuth: 'true' is not false: "
                                              "there is no SASL"},
        {"clientPortAddress=a b", "clientPortAddress: 'a b' is not the name or address of a host"},
        {"dataDir=a\\nb", "dataDir: control characters are not allowed"},
        {"dataDir=\\u00zz", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\ud800", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\ud800\\u0041", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\ud800xudc00", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\ud800\\xdc00", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\udc00\\udc00", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\ud800\\ue000", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\u004", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\udc00", "a zero byte, or a \\u without the four digits of a character"},
        {"dataDir=\\u0000", "a zero byte, or a \\u without the four digits of a character"},
        {"group.0=1", "group.0: a group's number is a whole number from 1 to 255"},
        {"group.1=1:255", "group.1: '1:255' is not servers' ids from 0 to 254 with colons "
                          "between them"},
        {"group.1=1:2:1", "group.1: server 1 is in a group already"},
        {"weight.1=-1", "weight.1: '-1' is not a whole number from 0 to 1000000"},
        {"server.255=h:1:2", "server.255: a server's id is a whole number from 0 to 254"},
        {"weight.x=1", "weight.x: a server's id is a whole number from 0 to 254"},
        {"listen=1:1,2:2,3:3,4:4,5:5", "listen: more than the allowed 4 addresses"},
        {"listen=a:1 b", "listen: 'a:1 b' has something other than a comma after a port"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        char text[256], expected[512];
        snprintf(text, sizeof text, "# a comment\n%s\nsnapCount=7\n", of[i].line);
        snprintf(expected, sizeof expected, "error zoo.cfg:2: %s\n", of[i].why);
        says(text, -1, expected);
    }
}

static void long_texts_are_refused_and_not_repeated(void **state) {
    struct settings s;
    char value[2 * SETTINGS_PATH_MAX], error[SETTINGS_ERROR_MAX];
    (void)state;
    settings_default(&s);
    memset(value, 'x', sizeof value);
    for (size_t size = SETTINGS_PATH_MAX - 1; size <= SETTINGS_PATH_MAX; size++) {
        value[size] = 0;
        int expected = size < SETTINGS_PATH_MAX ? SETTINGS_SET : SETTINGS_BAD;
        assert_int_equal(settings_set(&s, "dataDir", value, error, sizeof error), expected);
        assert_int_equal(settings_set(&s, "ssl.keyStore.location", value, error, sizeof error),
                         expected);
        value[size] = 'x';
    }
    assert_int_equal(strlen(s.data_dir), SETTINGS_PATH_MAX - 1);
    value[SETTINGS_HOST_MAX] = 0;
    assert_int_equal(settings_set(&s, "clientPortAddress", value, error, sizeof error), -1);
    value[SETTINGS_HOST_MAX - 1] = 0;
    assert_int_equal(settings_set(&s, "clientPortAddress", value, error, sizeof error), 0);
    value[0] = '[', value[SETTINGS_HOST_MAX - 1] = 'x';
    assert_int_equal(settings_set(&s, "ssl.keyStore.password", value, error, sizeof error), -1);
    assert_string_equal(error, "ssl.keyStore.password: longer than the allowed 255 bytes");
}

static void errors_fit_whatever_room_there_is(void **state) {
    struct settings s;
    (void)state;
    settings_default(&s);
    for (size_t size = 1; size < 80; size++) {
        char *error = malloc(size);
        assert_non_null(error);
        assert_int_equal(settings_set(&s, "tickTime", "no", error, size), SETTINGS_BAD);
        assert_true(strlen(error) < size);
        free(error);
    }
}

/* ---- Keys ---- */

#define UNKNOWN "is not known here and has no effect"

static void unknown_keys_are_named_and_passed_over(void **state) {
    (void)state;
    says("nosuch=1\nclientport = 5\n=x\nnot\\u001bsafe=1\nserver=1", 0,
         "note zoo.cfg:1: nosuch: " UNKNOWN "\n"
         "note zoo.cfg:2: clientport: " UNKNOWN "; did you mean clientPort\n"
         "note zoo.cfg:3: : " UNKNOWN "\n"
         "note zoo.cfg:4: not?safe: " UNKNOWN "\n"
         "note zoo.cfg:5: server: " UNKNOWN "\n");
    says("tikTime=1\nmaxSesionTimout=1\nfoo=1\ntick=1", 0,
         "note zoo.cfg:1: tikTime: " UNKNOWN "; did you mean tickTime\n"
         "note zoo.cfg:2: maxSesionTimout: " UNKNOWN "; did you mean maxSessionTimeout\n"
         "note zoo.cfg:3: foo: " UNKNOWN "\n"
         "note zoo.cfg:4: tick: " UNKNOWN "\n");
}

/* A prefix that ZooKeeper or this server has says nothing about what follows it. */
static void unknown_keys_are_named_below_known_prefixes(void **state) {
    static const char *const prefixes[] = {
        "ssl.",      "ssl.quorum.", "admin.",   "quorum.",   "observer.", "enforce.",
        "leader.",   "learner.",    "netty.",   "nio.",      "snapshot.", "metricsProvider.",
        "follower.", "audit.",      "request_", "tls.",      "ensemble.", "znode.container.",
        "jvm.",      "sasl.",       "fsync.",   "autopurge."};
    (void)state;
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char line[64], expected[256];
        snprintf(line, sizeof line, "%sneverHeardOfIt=1", prefixes[i]);
        snprintf(expected, sizeof expected, "note zoo.cfg:1: %sneverHeardOfIt: " UNKNOWN "\n",
                 prefixes[i]);
        says(line, 0, expected);
    }
    says("ssl.clientAuht=none\nenforce.auth.enable=true\nadmin.serverPorts=1\n"
         "ssl.keystore.location=a",
         0,
         "note zoo.cfg:1: ssl.clientAuht: " UNKNOWN "; did you mean ssl.clientAuth\n"
         "note zoo.cfg:2: enforce.auth.enable: " UNKNOWN "; did you mean enforce.auth.enabled\n"
         "note zoo.cfg:3: admin.serverPorts: " UNKNOWN "; did you mean admin.serverPort\n"
         "note zoo.cfg:4: ssl.keystore.location: " UNKNOWN
         "; did you mean ssl.keyStore.location\n");
}

static void what_has_no_meaning_here_is_told(void **state) {
    (void)state;
    says("electionAlg=3\nlocalSessionsEnabled=false\nautopurge.purgeInterval=\n"
         "DigestAuthenticationProvider.enabled=true\nDigestAuthenticationProvider.digestAlg=SHA1",
         0, ""); /* these are as they would be in ZooKeeper */
    says("nio.numWorkerThreads=8\nadmin.forceHttps=true\nzookeeper.ssl.trustStore.password=x\n"
         "quorum.auth.serverRequireSasl=true\nserver.realm=x\nfips-mode=true\n"
         "connectionMaxTokens=5\nmetricsProvider.ssl.keyStore.location=x\nrequestThrottleLimit=5",
         0,
         "note zoo.cfg:1: nio.numWorkerThreads: has no effect: it tunes ZooKeeper's own "
         "implementation\n"
         "note zoo.cfg:2: admin.forceHttps: has no effect: HTTP has no TLS\n"
         "note zoo.cfg:3: ssl.trustStore.password: has no effect: authorities in PEM have no "
         "password\n"
         "note zoo.cfg:4: quorum.auth.serverRequireSasl: has no effect: there is no SASL\n"
         "note zoo.cfg:5: server.realm: has no effect: there is no SASL\n"
         "note zoo.cfg:6: fips-mode: has no effect: the TLS library decides\n"
         "note zoo.cfg:7: connectionMaxTokens: has no effect: maxCnxns and maxClientCnxns bound "
         "connections\n"
         "note zoo.cfg:8: metricsProvider.ssl.keyStore.location: has no effect: HTTP has no TLS\n"
         "note zoo.cfg:9: requestThrottleLimit: has no effect: globalOutstandingLimit bounds "
         "requests\n");
    says("localSessionsEnabled=true\nautopurge.purgeInterval=1\nauthProvider.1=org.example.It", 0,
         "note zoo.cfg:1: localSessionsEnabled: ignored: every session is known to all servers\n"
         "note zoo.cfg:2: autopurge.purgeInterval: ignored: old snapshots are removed whenever a "
         "new one is written\n"
         "note zoo.cfg:3: authProvider.1: ignored: schemes cannot be added\n");
    says("metricsProvider.className=\nmetricsProvider.className=org.example.Metrics", 0,
         "note zoo.cfg:2: metricsProvider.className: ignored: 'org.example.Metrics' is not known "
         "here; PrometheusMetricsProvider turns the port for metrics on\n");
    parsed("metricsProvider.className=org.apache.zookeeper.metrics.impl.NullMetricsProvider");
    parsed("metricsProvider.className=org.apache.zookeeper.metrics.impl.DefaultMetricsProvider");
}

static void what_is_stored_and_not_used_is_told(void **state) {
    (void)state;
    says("initLimit=10\nsyncLimit=5\nsyncLimit=0\n"
         "znode.container.maxNeverUsedIntervalMs=0\nznode.container.maxNeverUsedIntervalMs="
         "5\nlargeRequestMaxBytes=5\nleaderServes=yes",
         -1,
         "note zoo.cfg:1: initLimit: has no effect: a server may take as long as it needs to catch "
         "up with the leader\n"
         "note zoo.cfg:2: syncLimit: has no effect: a leader that is silent for "
         "ensemble.electionTimeoutMs is replaced\n"
         "error zoo.cfg:3: syncLimit: '0' is not a whole number from 1 to 1000000\n"
         "note zoo.cfg:5: znode.container.maxNeverUsedIntervalMs: has no effect: a container is "
         "kept until it has had a child\n"
         "note zoo.cfg:6: largeRequestMaxBytes: ignored: jute.maxbuffer bounds each request\n");
}

static void timeouts_suit_each_other(void **state) {
    (void)state;
    struct settings s = settled("ensemble.electionTimeoutMs=1000\nensemble.heartbeatMs=250");
    assert_int_equal(s.election_timeout_ms, 1000);
    assert_int_equal(s.heartbeat_ms, 250);
    says("ensemble.electionTimeoutMs=499", -1,
         "error zoo.cfg:1: ensemble.electionTimeoutMs: '499' is not a whole number from 500 to "
         "60000\n"); /* leases of other servers rely on 500 */
    will_not_settle("ensemble.heartbeatMs=126", "more than a quarter of ensemble.electionTimeout");
    will_not_settle("ensemble.electionTimeoutMs=2000\nensemble.heartbeatMs=501", "a quarter");
    settled("ensemble.electionTimeoutMs=60000"); /* a server alone has no elections */
#define ENSEMBLE                                                                                   \
    "myid=1\nensemble=1=127.0.0.1:2888,2=127.0.0.1:2889\nensemble.insecure=true\ntickTime=1000\n"
    settled(ENSEMBLE "ensemble.electionTimeoutMs=1000");
    will_not_settle(ENSEMBLE "ensemble.electionTimeoutMs=1001", "half of minSessionTimeout");
    /* The default may be longer than that, which is warned of. */
    expect_doubts(ENSEMBLE "minSessionTimeout=999", "minSessionTimeout");
    expect_doubts("myid=1\nensemble=1=h:1\nensemble.insecure=true\ntickTime=499",
                  "minSessionTimeout");
    expect_doubts(ENSEMBLE "minSessionTimeout=1000", "");
    expect_doubts("minSessionTimeout=100", "");
}

/* One of the two would be dropped, and the ensemble have another size than was meant. */
static void a_server_has_one_line(void **state) {
    (void)state;
    says("server.1=a:1:2\nserver.2=b:1:2\n\nserver.1=c:1:2\nserver.2=b:1:2", -1,
         "error zoo.cfg:4: server.1: there is a server 1 in zoo.cfg:1 already\n"
         "error zoo.cfg:5: server.2: there is a server 2 in zoo.cfg:2 already\n");
    says("server.1=a:1:2\nserver.01=b:1:2", -1,
         "error zoo.cfg:2: server.01: there is a server 1 in zoo.cfg:1 already\n");
    says("server.3=a:1:2\nzookeeper.server.3=b:1:2", -1,
         "error zoo.cfg:2: server.3: there is a server 3 in zoo.cfg:1 already\n");
    says("weight.1=2\nserver.1=a:1:2\nserver.10=b:1:2\ngroup.1=1:10", 0, "");
    /* The command line may say it anew. */
    char error[SETTINGS_ERROR_MAX];
    struct settings s = parsed("server.1=a:1:2");
    assert_int_equal(settings_set(&s, "server.1", "b:1:2", error, sizeof error), SETTINGS_SET);
    assert_string_equal(s.members.at[0].host, "b");
}

/* As Java takes them; but it says nothing. */
static void the_last_of_two_values_counts(void **state) {
    struct settings s;
    struct heard heard;
    const char *text = "dataDir=/a\nzookeeper.snapCount=5\n\ndataDir=/b\nsnapCount=6\nsnapCount=7";
    (void)state;
    settings_default(&s);
    assert_int_equal(parse_bytes_of(&s, text, strlen(text), &heard), 0);
    assert_string_equal(s.data_dir, "/b");
    assert_int_equal(s.snapshot_count, 7);
    assert_string_equal(heard.text,
                        "note zoo.cfg:4: dataDir: this value counts, not the one in zoo.cfg:1\n"
                        "note zoo.cfg:5: snapCount: this value counts, not the one in zoo.cfg:2\n"
                        "note zoo.cfg:6: snapCount: this value counts, not the one in zoo.cfg:5\n");
    says("listen.http=off\nlisten.http=h:0", 0,
         "note zoo.cfg:2: listen.http: this value counts, not the one in zoo.cfg:1\n");
}

/* ---- Warnings ---- */

static void expect_exposed(const char *text, const char *expected) {
    struct settings s = settled(text);
    char found[256] = "";
    settings_exposures(&s, note_warning, found);
    assert_string_equal(found, expected);
}

#define MEMBERS "myid=1\nensemble=1=h:1,2=i:1\n"
#define TLS     "tls.certificate=c\ntls.key=k\n"

static void addresses_without_effect_are_told(void **state) {
    static const char prometheus[] = "metricsProvider.className=a.b.PrometheusMetricsProvider\n";
    char text[256];
    (void)state;
    expect_doubts("", "");
    expect_doubts("listen=h:5\nclientPort=6", "clientPort");
    expect_doubts("listen=h:5,h:6\nclientPort=6\nclientPortAddress=h", "");
    expect_doubts("listen=h:5\nclientPort=5\nclientPortAddress=i", "clientPortAddress");
    expect_doubts("listen=h:5\nserver.1=h:1:2;6", ""); /* nobody has set clientPort */
    expect_doubts(TLS "clientPortAddress=h\nsecureClientPort=6", "clientPortAddress");
    expect_doubts(TLS "listen.tls=h:5\nsecureClientPort=6", "secureClientPort");
    expect_doubts("secureClientPortAddress=h", "secureClientPortAddress");
    expect_doubts("listen.http=h:5\nadmin.serverPort=6", "admin.serverPort");
    expect_doubts("listen.http=off\nadmin.serverPort=6", "admin.serverPort");
    expect_doubts("listen.http=h:5\nadmin.serverAddress=i", "admin.serverAddress");
    expect_doubts("listen.http=h:5\nadmin.enableServer=false", "admin.enableServer");
    expect_doubts("listen.http=off\nadmin.enableServer=false", "");
    expect_doubts("admin.serverPort=6\nadmin.enableServer=false", "");
    expect_doubts("metricsProvider.httpHost=h", "metricsProvider.httpHost");
    expect_doubts("metricsProvider.httpHost=h\nmetricsProvider.httpPort=5", "");
    expect_doubts("listen.http=off\nmetricsProvider.httpPort=5", "metricsProvider.httpPort");
    expect_doubts("listen.http=*:5\nmetricsProvider.httpPort=5", "");
    expect_doubts("metricsProvider.httpPort=5\nadmin.enableServer=false", "");
    snprintf(text, sizeof text, "%smetricsProvider.httpHost=h", prometheus);
    expect_doubts(text, "");
}

static void credentials_without_effect_are_told(void **state) {
    (void)state;
    expect_doubts(TLS "tls.authorities=a", "tls.certificate tls.key tls.authorities");
    expect_doubts(TLS "tls.authorities=a\nlisten.tls=h:1", "");
    expect_doubts(TLS "tls.authorities=a\nclient.portUnification=true", "");
    expect_doubts("sslQuorum=true\nensemble.found=true", "sslQuorum ensemble.found");
    expect_doubts("server.1=h:1:2\nensemble.keyFile=k\nensemble.join=true",
                  "ensemble.keyFile ensemble.join");
    expect_doubts("ensemble.certificate=c\nensemble.certificateKey=k\nensemble.authorities=a",
                  "ensemble.certificate ensemble.certificateKey ensemble.authorities");
    expect_doubts(MEMBERS "sslQuorum=true\nensemble.keyFile=k\nensemble.found=true", "");
    expect_doubts("ensemble.electionTimeoutMs=2000", "");
}

static void a_super_user_that_nobody_can_be_is_told(void **state) {
#define SUPER "DigestAuthenticationProvider.superDigest"
    (void)state;
    expect_doubts(SUPER "=super:D/InIHSb7yEEbrWz8b9l71RjZJU=", "");
    expect_doubts(SUPER "=", "");
    expect_doubts(SUPER "=super:secret", SUPER);
    expect_doubts(SUPER "=D/InIHSb7yEEbrWz8b9l71RjZJU=", SUPER);
    expect_doubts(SUPER "=:D/InIHSb7yEEbrWz8b9l71RjZJU=", SUPER);
    expect_doubts(SUPER "=super:D/InIHSb7yEEbrWz8b9l71RjZJUx", SUPER);
    expect_doubts(SUPER "=super:D/InIHSb7yEEbrWz8b9l71RjZJU==", SUPER);
    expect_doubts(SUPER "=super:D/InIHSb7yEE rWz8b9l71RjZJU=", SUPER);
#undef SUPER
}

static void what_lets_strangers_in_is_told(void **state) {
    (void)state;
    expect_exposed("", "");
    expect_exposed("listen=127.0.0.1:1,10.0.0.1:1", "");
    expect_exposed("listen=127.0.0.1:1,*:2", "listen");
    expect_exposed("clientPort=2181", "listen"); /* as in ZooKeeper, that is every address */
    expect_exposed("listen=[::]:1", "listen");
    expect_exposed("listen=0:1", "listen");
    expect_exposed("listen=0x0:1", "listen");
    expect_exposed("listen=[0:0::0]:1", "listen");
    expect_exposed("listen=[::ffff:0.0.0.0]:1", "listen");
    expect_exposed("listen=[::1]:1", "");
    expect_exposed(TLS "listen.tls=0.0.0.0:1", "listen");
    expect_exposed(TLS "listen.tls=0.0.0.0:1\ntls.authorities=a", "");
    expect_exposed(TLS "listen.tls=*:1\ntls.authorities=a\nssl.clientAuth=want", "listen");
    expect_exposed("listen.http=*:1", "listen.http");
    expect_exposed("metricsProvider.httpPort=9", "metricsProvider.httpHost");
    expect_exposed("metricsProvider.httpPort=9\nmetricsProvider.httpHost=h\nadmin.hosts=*\n"
                   "admin.enableServer=false",
                   "admin.hosts");
    expect_exposed("listen.http=off\nadmin.hosts=*", "");
    expect_exposed("admin.hosts=a, *", "admin.hosts");
    expect_exposed("admin.hosts=a", "");
    expect_exposed("skipACL=yes", "skipACL");
    expect_exposed("4lw.commands.whitelist=*", "4lw.commands.whitelist");
    expect_exposed("4lw.commands.whitelist=ruok,mntr", "");
    expect_exposed("ensemble.insecure=true", ""); /* it is alone */
    expect_exposed("myid=1\nensemble=1=127.0.0.1:1,2=127.0.0.1:2\nensemble.insecure=true",
                   "ensemble.insecure");
}

static void list_key(void *context, const struct settings_key *key) {
    unsigned *count = context;
    assert_true(*key->name && *key->help);
    ++*count;
}

static void every_key_is_listed_with_its_meaning(void **state) {
    unsigned count = 0;
    (void)state;
    settings_list(list_key, &count);
    assert_true(count > 150);
}

/* ---- Lines ---- */

static void lines_are_those_of_properties(void **state) {
    static const struct {
        const char *text, *data_dir;
    } of[] = {
        {"dataDir=/x", "/x"},
        {"dataDir:/x", "/x"},
        {"dataDir /x", "/x"},
        {"\t\f dataDir \t=  /x  \r\n", "/x"},
        {"dataDir\t:=x", "=x"},
        {"dataDir==x", "=x"},
        {"dataDir = = x", "= x"},
        {"dataDir=/a#b!", "/a#b!"},
        {"#dataDir=/x\n  !dataDir=/y\n\n\r\r\n# x \\\ndataDir=/z", "/z"},
        {"dataDir=/a\\\n   \t/b\\\r\n/c", "/a/b/c"},
        {"dataDir=/a\\\n#b", "/a#b"},
        {"dataDir=/a\\\n\nsnapCount=5", "/a"},
        {"dataDir=/a\\\\\nsnapCount=5", "/a\\"},
        {"dataDir=/a\\\\\\\nb", "/a\\b"},
        {"dataDir=/a\\", "/a"},
        {"data\\\nDir=/a", "/a"},
        {"\\\ndataDir=/a", "/a"},
        {"\\\n#dataDir=/b\ndataDir=/a", "/a"},
        {"data\\u0044ir=\\u0041\\u00e9\\u20AC\\ud83d\\uDE00",
         "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"dataDir=\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff",
         "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"dataDir=\\:\\=\\#\\ x\\q", ":=# xq"},
        {"dataDir=\\tx\\n", "x"}, /* as ZooKeeper trims */
        {"dataDir\\ =x", "x"},
        {"d\\atadir=1", NULL},
        {"dataDir\\=1", NULL},
        {"dataDir=\xc3\xa9", "\xc3\xa9"},
        {"dataDir", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        struct settings s;
        struct heard heard;
        settings_default(&s);
        int failed = parse_bytes_of(&s, of[i].text, strlen(of[i].text), &heard);
        const char *expected = of[i].data_dir ? of[i].data_dir : "conclave-data";
        if (failed || strcmp(s.data_dir, expected) != 0 || !*heard.text != !!of[i].data_dir)
            fail_msg("row %zu: '%s' gives '%s'; %s", i, of[i].text, s.data_dir, heard.text);
    }
}

static void lines_are_counted_as_an_editor_does(void **state) {
    (void)state;
    says("# one\r\n\r\na\\\n\\\nb=1\rc=1\n\nd=1", 0,
         "note zoo.cfg:3: ab: " UNKNOWN "\nnote zoo.cfg:6: c: " UNKNOWN
         "\nnote zoo.cfg:8: d: " UNKNOWN "\n");
}

static void what_is_not_text_is_refused(void **state) {
    struct settings s;
    struct heard heard;
    (void)state;
    settings_default(&s);
    assert_int_equal(parse_bytes_of(&s, "dataDir=a\0b\nsnapCount=5", 23, &heard), -1);
    assert_string_equal(
        heard.text,
        "error zoo.cfg:1: a zero byte, or a \\u without the four digits of a character\n");
    assert_int_equal(s.snapshot_count, 5); /* the rest is read: one run shows all errors */
    char *large = malloc(SETTINGS_FILE_MAX + 1);
    assert_non_null(large);
    memset(large, '#', SETTINGS_FILE_MAX + 1);
    assert_int_equal(parse_bytes_of(&s, large, SETTINGS_FILE_MAX, &heard), 0);
    assert_int_equal(parse_bytes_of(&s, large, SETTINGS_FILE_MAX + 1, &heard), -1);
    assert_string_equal(heard.text, "error zoo.cfg: larger than 1048576 bytes\n");
    free(large);
}

/* ---- Where to listen ---- */

static void listeners_come_from_ports_and_addresses(void **state) {
    static const char tls[] = "ssl.keyStore.location=/k.pem\n";
    static const struct {
        const char *text, *clients, *tls, *http;
    } of[] = {
        {"clientPort=5", "* 5", "", "127.0.0.1 8080"},
        {"clientPort=5\nclientPortAddress=h", "h 5", "", "127.0.0.1 8080"},
        {"clientPortAddress=::1\nclientPort=5", "::1 5", "", "127.0.0.1 8080"},
        {"clientPortAddress=[fe80::1%eth0]\nclientPort=5", "fe80::1%eth0 5", "", "127.0.0.1 8080"},
        {"clientPortAddress=10.0.0.1", "10.0.0.1 2181", "", "127.0.0.1 8080"},
        {"clientPortAddress=\nclientPort=5", "* 5", "", "127.0.0.1 8080"},
        {"secureClientPort=6", "", "* 6", "127.0.0.1 8080"},
        {"secureClientPort=6\nclientPort=0", "", "* 6", "127.0.0.1 8080"},
        {"secureClientPort=6\nclientPort=5\nsecureClientPortAddress=h", "* 5", "h 6",
         "127.0.0.1 8080"},
        {"admin.serverPort=7", "127.0.0.1 2181", "", "* 7"},
        {"admin.serverAddress=::", "127.0.0.1 2181", "", ":: 8080"},
        {"admin.enableServer=false", "127.0.0.1 2181", "", ""},
        {"listen=a:1, [::1]:0 ,*:3\nclientPort=9", "a 1, ::1 0, * 3", "", "127.0.0.1 8080"},
        {"listen.tls=t:4\nlisten.http=h:5,i:6", "", "t 4", "h 5, i 6"},
        {"server.1=h:2888:3888;2182", "* 2182", "", "127.0.0.1 8080"},
        {"server.1=h:2888:3888;[::1]:2182", "::1 2182", "", "127.0.0.1 8080"},
        {"server.1=h:2888:3888;2182\nclientPort=2182\nclientPortAddress=h", "h 2182", "",
         "127.0.0.1 8080"},
        {"server.1=h:2888:3888;2182\nclientPort=5\nlisten=a:1", "a 1", "", "127.0.0.1 8080"},
        {"server.1=h:2888:3888;2182\nclientPort=0", "* 2182", "", "127.0.0.1 8080"},
        {"server.1=h:2888:3888", "127.0.0.1 2181", "", "127.0.0.1 8080"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", tls, of[i].text);
        struct settings s = settled(text);
        expect_listeners(&s.clients, of[i].clients);
        expect_listeners(&s.tls, of[i].tls);
        expect_listeners(&s.http, of[i].http);
        assert_int_equal(s.members.count, 0);
    }
    will_not_settle("clientPort=0", "set clientPort or secureClientPort");
    will_not_settle("server.1=h:2888:3888;2182\nclientPort=5",
                    "clientPort, 5, is different from the port for clients of server.1, 2182");
    will_not_settle("server.1=h:1:2;2182\nserver.2=h:3:4;5\nmyid=1\nclientPort=5",
                    "clientPort, 5, is different");
}

static void metrics_have_an_address_of_their_own(void **state) {
    static const struct {
        const char *text, *http, *metrics;
    } of[] = {
        {"", "127.0.0.1 8080", ""},
        {"metricsProvider.className=a.b.PrometheusMetricsProvider", "127.0.0.1 8080", "* 7000"},
        {"metricsProvider.httpPort=9\nmetricsProvider.httpHost=h\nadmin.enableServer=false", "",
         "h 9"},
        {"metricsProvider.httpPort=9\nlisten.http=h:5", "h 5", "* 9"},
        {"metricsProvider.httpPort=9\nadmin.serverPort=9", "* 9", ""}, /* it serves all */
        {"metricsProvider.httpPort=9\nlisten.http=h:5,*:9", "h 5, * 9", ""},
        {"metricsProvider.httpPort=9\nlisten.http=off", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        struct settings s = settled(of[i].text);
        expect_listeners(&s.http, of[i].http);
        expect_listeners(&s.metrics, of[i].metrics);
    }
}

static void addresses_that_are_none(void **state) {
    static const char *const of[] = {
        "",      "a",      "a:",   ":1",    "2181",   "a:65536",  "a:-1",  "a:1,",       "::1:2181",
        "[::1]", "[::1:1", "[]:1", "a b:1", "a:0x10", "a:123456", "[*]:1", "127.0.0.1;1"};
    struct settings s;
    char error[SETTINGS_ERROR_MAX];
    (void)state;
    settings_default(&s);
    for (size_t i = 0; i < COUNT(of); i++)
        if (settings_set(&s, "listen", of[i], error, sizeof error) != SETTINGS_BAD)
            fail_msg("'%s' is taken", of[i]);
    assert_int_equal(s.clients.count, 0);
    assert_int_equal(settings_set(&s, "listen.http", "off", error, sizeof error), SETTINGS_SET);
    assert_int_equal(settings_set(&s, "listen.http", "of", error, sizeof error), SETTINGS_BAD);
    assert_true(s.written.http_off); /* what is refused changes nothing */
}

static void tls_needs_its_files(void **state) {
    (void)state;
    struct settings s = settled("secureClientPort=6\nssl.keyStore.location=/k\n"
                                "ssl.keyStore.type=pem\nssl.keyStore.password=secret\n"
                                "ssl.trustStore.location=/ca.pem\n");
    assert_string_equal(s.tls_certificate, "/k");
    assert_string_equal(s.tls_key, "/k");
    assert_string_equal(s.tls_key_password, "secret");
    assert_string_equal(s.tls_authorities, "/ca.pem");
    assert_int_equal(s.client_auth, SETTINGS_AUTH_NEED);
    s = settled("listen.tls=a:1\ntls.certificate=/c\ntls.key=/k\ntls.authorities=/a\n"
                "ssl.clientAuth=Want");
    assert_string_equal(s.tls_certificate, "/c");
    assert_string_equal(s.tls_key, "/k");
    assert_int_equal(s.client_auth, SETTINGS_AUTH_WANT);
    s = settled("ssl.clientAuth=none\ntls.authorities=/a");
    assert_int_equal(s.client_auth, SETTINGS_AUTH_NONE);
    will_not_settle("secureClientPort=6", "TLS needs a certificate and its key");
    will_not_settle("client.portUnification=true", "TLS needs a certificate and its key");
    will_not_settle("secureClientPort=6\ntls.certificate=/c", "TLS needs a certificate");
    will_not_settle("ssl.clientAuth=need", "ssl.clientAuth needs ssl.trustStore.location");
    says("ssl.trustStore.location=/a.JKS", -1,
         "error zoo.cfg:1: ssl.trustStore.location: '/a.JKS' is not a PEM file; openssl pkcs12 or "
         "keytool can make one\n");
}

/* ---- Words ---- */

static void words_are_allowed_or_not(void **state) {
    static const struct {
        const char *list, *word;
        bool allowed;
    } of[] = {
        {"srvr", "srvr", true},       {"srvr", "ruok", false},  {"*", "ruok", true},
        {"stat, ruok", "ruok", true}, {" ruok ", "ruok", true}, {"stat,ruok ,x", "stat", true},
        {"stat,*", "wchp", true},     {"ruokx", "ruok", false}, {"ruo", "ruok", false},
        {"stat*", "stat", false},     {"", "srvr", false},      {",,", "srvr", false},
        {",, conf,", "conf", true},   {"RUOK", "ruok", false},
    };
    (void)state;
    struct settings s = settled("");
    assert_true(settings_allows(&s, "srvr"));
    assert_false(settings_allows(&s, "isro"));
    s.read_only_mode = true;
    assert_true(settings_allows(&s, "isro"));
    s.read_only_mode = false;
    for (size_t i = 0; i < COUNT(of); i++) {
        snprintf(s.words, sizeof s.words, "%s", of[i].list);
        if (settings_allows(&s, of[i].word) != of[i].allowed) fail_msg("row %zu", i);
    }
}

/* ---- Members ---- */

static void members_are_kept(void **state) {
    struct settings s = settled("ensemble.insecure=true\n"
                                "server.3=[::1]:30:31:observer;32\n"
                                "server.254=zoo-1.example.:2888:3888:PARTICIPANT;0.0.0.0:2181\n"
                                "weight.2=5\ngroup.2=254\ngroup.1=2\nserver.2=i:7:8\nmyid=3");
    (void)state;
    assert_int_equal(s.members.count, 3);
    assert_int_equal(s.members.at[1].id, 3); /* in the order of ids */
    assert_string_equal(member_list_find(&s.members, 3)->host, "::1");
    assert_int_equal(member_list_find(&s.members, 3)->peer_port, 30);
    assert_int_equal(member_list_find(&s.members, 3)->election_port, 31);
    assert_true(member_list_find(&s.members, 3)->observer);
    assert_string_equal(member_list_find(&s.members, 3)->client.host, "*");
    assert_int_equal(member_list_find(&s.members, 3)->client.port, 32);
    assert_string_equal(member_list_find(&s.members, 2)->host, "i"); /* the later line counts */
    assert_int_equal(member_list_find(&s.members, 2)->client.port, 0);
    assert_string_equal(member_list_find(&s.members, 254)->host, "zoo-1.example.");
    assert_string_equal(member_list_find(&s.members, 254)->client.host, "0.0.0.0");
    assert_false(member_list_find(&s.members, 254)->observer);
    assert_null(member_list_find(&s.members, 1));
    assert_int_equal(member_list_find(&s.members, 2)->weight, 5);
    assert_int_equal(member_list_find(&s.members, 3)->weight, 1);
    assert_int_equal(member_list_find(&s.members, 254)->group, 2);
    assert_int_equal(member_list_find(&s.members, 2)->group, 1);
    assert_int_equal(member_list_find(&s.members, 3)->group, 0);
}

static void members_that_are_none(void **state) {
    static const char *const of[] = {"",          "h",           "h:1",          "h:1:",
                                     "h:0:1",     "h:1:2:",      "h:1:2:leader", "h:1:2:observers",
                                     "h:1:2;",    "h:1:2;0",     "h:1:2;h",      "h:1:2;h:",
                                     "h:1:2;3;4", "h:1:2|i:3:4", "::1:1:2",      "h:1:70000"};
    struct settings s;
    char error[SETTINGS_ERROR_MAX], key[16];
    (void)state;
    settings_default(&s);
    for (size_t i = 0; i < COUNT(of); i++)
        if (settings_set(&s, "server.1", of[i], error, sizeof error) != SETTINGS_BAD)
            fail_msg("'%s' is taken", of[i]);
    assert_int_equal(settings_set(&s, "server.256", "h:1:2", error, sizeof error), SETTINGS_BAD);
    assert_int_equal(settings_set(&s, "server.", "h:1:2", error, sizeof error), SETTINGS_BAD);
    assert_int_equal(s.members.count, 0);
    for (int i = 0; i <= MEMBER_LIST_MAX; i++) {
        snprintf(key, sizeof key, "server.%d", i);
        assert_int_equal(settings_set(&s, key, "h:1:2", error, sizeof error),
                         i < MEMBER_LIST_MAX ? SETTINGS_SET : SETTINGS_BAD);
    }
    assert_string_equal(error, "server.32: more than 32 servers");
}

static void members_fit_together(void **state) {
#define KEY "\nensemble.keyFile=k"
    const char *list = "group.1=1\nserver.1=h:1:2\nserver.2=h:3:4:observer\nmyid=1" KEY;
    (void)state;
    assert_int_equal(settled("server.1=h:1:2\nstandaloneEnabled=false\nmyid=1" KEY).members.count,
                     1);
    assert_int_equal(settled("server.1=h:1:2\nserver.2=h:3:4:observer\nmyid=2" KEY).members.count,
                     2);
    assert_int_equal(settled(list).members.count, 2);
    assert_int_equal(settled("ensemble=1=h:1,2=[::1]:3\nmyid=2" KEY).members.at[1].peer_port, 3);
    assert_int_equal(settled("ensemble=7=h:1\nmyid=7" KEY).members.count, 1); /* it can be found */
#undef KEY
    will_not_settle("ensemble=1=h:1,2=i:3", "needs its id");
    will_not_settle("ensemble=1=h:1,2=i:3\nmyid=3", "server 3 is not among the servers");
    says("ensemble=1=h:1,2=i:3,1=j:5", -1,
         "error zoo.cfg:1: ensemble: '1=h:1,2=i:3,1=j:5' has server 1 twice\n");
    will_not_settle("ensemble.join=true", "to join an ensemble, name its servers");
    will_not_settle("ensemble=1=h:1\nmyid=1\nsslQuorum=true", "TLS needs a certificate");
    will_not_settle("ensemble=1=h:1\nmyid=1\nensemble.keyFile=k\nensemble.certificate=c",
                    "not both");
    will_not_settle("server.1=h:1:2:observer", "every server.N is an observer");
    will_not_settle("group.1=1:2\nserver.1=h:1:2\nserver.3=h:3:4",
                    "group.1 has server 2, but there is no server.2");
    will_not_settle("group.1=1:254\nserver.1=h:1:2", "there is no server.254");
    will_not_settle("group.1=1\nserver.1=h:1:2\nserver.3=h:3:4", "server.3 is in no group");
    will_not_settle("weight.3=2\nserver.1=h:1:2\nserver.2=h:3:4", "weight.3: there is no server.3");
    will_not_settle("weight.3=2", "weight.3: there is no server.3");
    will_not_settle("ensemble=1=h:1,2=h:3,3=H:1\nmyid=1",
                    "server.1 and server.3 have the same host and port");
    says("group.1=1:2\ngroup.1=2:3\ngroup.2=4:3", -1,
         "note zoo.cfg:2: group.1: this value counts, not the one in zoo.cfg:1\n"
         "error zoo.cfg:3: group.2: server 3 is in a group already\n");
}

/* No address is an exception: a loopback address is open to every user of the machine. */
static void links_need_credentials(void **state) {
    static const char need[] = "make one with 'conclave key FILE'";
    (void)state;
    will_not_settle("ensemble=1=127.0.0.1:1,2=127.0.0.1:2\nmyid=1", need);
    will_not_settle("ensemble=1=[::1]:1\nmyid=1", need);
    will_not_settle("ensemble=1=h:1,2=i:1\nmyid=2\nensemble.join=true", need);
    will_not_settle("server.1=h:1:2\nserver.2=h:3:4\nmyid=1", need);
    will_not_settle("server.1=h:1:2\nstandaloneEnabled=false\nmyid=1", need);
    will_not_settle("ensemble=1=h:1\nmyid=1\nensemble.insecure=false", "--insecure");
    assert_int_equal(settled("server.1=h:1:2\nmyid=1").members.count, 0); /* it is alone */
    assert_true(settled("ensemble=1=h:1\nmyid=1\nensemble.insecure=true").insecure);
    assert_false(settled("ensemble=1=h:1\nmyid=1\nensemble.keyFile=k").insecure);
    assert_false(settled("ensemble=1=h:1\nmyid=1\nssl.quorum.keyStore.location=c\n"
                         "ssl.quorum.trustStore.location=t")
                     .insecure);
    will_not_settle("ensemble=1=h:1\nmyid=1\nensemble.insecure=true\nensemble.keyFile=k",
                    "but not both");
    will_not_settle("ensemble=1=h:1\nmyid=1\nensemble.insecure=true\nensemble.authorities=a",
                    "but not both");
}

/* ---- Files ---- */

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void the_number_is_in_the_data(void **state) {
    char folder[] = "/tmp/settings-XXXXXX", path[64], text[128];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/myid", folder);
    write_file(path, "2\n");
    snprintf(text, sizeof text, "ensemble=1=h:1,2=i:3\nensemble.insecure=true\ndataDir=%s", folder);
    assert_int_equal(settled(text).server_id, 2);
    snprintf(text, sizeof text, "ensemble=1=h:1,2=i:3\nmyid=2\nensemble.insecure=true\ndataDir=%s",
             folder);
    assert_int_equal(settled(text).server_id, 2);
    snprintf(text, sizeof text, "ensemble=1=h:1,2=i:3\nmyid=1\nensemble.insecure=true\ndataDir=%s",
             folder);
    will_not_settle(text, "this is server 1, but the file");
    unlink(path);
    rmdir(folder);
}

static void files_are_read_with_the_one_they_name(void **state) {
    char folder[] = "/tmp/settings-XXXXXX", path[64], members[64], text[320];
    struct settings s;
    struct heard heard = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/zoo.cfg", folder);
    snprintf(members, sizeof members, "%s/members", folder);
    snprintf(text, sizeof text, "tickTime=7\ndynamicConfigFile=%s\n", members);
    write_file(path, text);
    write_file(
        members,
        "server.1=h:1:2;3\nserver.2=h:4:5;6\nversion=0\nodd=1\nmyid=2\nensemble.insecure=true");
    settings_default(&s);
    assert_int_equal(settings_read(&s, path, hear, &heard), 0);
    snprintf(text, sizeof text,
             "note %s:3: version: has no effect: the ensemble counts versions of its configuration "
             "itself\nnote %s:4: odd: " UNKNOWN "\n",
             members, members);
    assert_string_equal(heard.text, text);
    assert_int_equal(s.tick_ms, 7);
    assert_int_equal(s.members.count, 2);
    assert_int_equal(settings_settle(&s, text, sizeof text), 0);
    assert_int_equal(s.clients.at[0].port, 6); /* its own line says where clients come */

    settings_default(&s);
    snprintf(text, sizeof text, "server.2=h:1:2\ndynamicConfigFile=%s\n", members);
    write_file(path, text);
    heard = (struct heard){0};
    assert_int_equal(settings_read(&s, path, hear, &heard), -1);
    snprintf(text, sizeof text, "error %s:2: server.2: there is a server 2 in %s:1 already\n",
             members, path);
    assert_memory_equal(heard.text, text, strlen(text));

    unlink(members);
    heard = (struct heard){0};
    assert_int_equal(settings_read(&s, path, hear, &heard), -1);
    snprintf(text, sizeof text, "error %s:2: dynamicConfigFile: %s: No such file or directory\n",
             path, members);
    assert_string_equal(heard.text, text);

    unlink(path);
    heard = (struct heard){0};
    assert_int_equal(settings_read(&s, path, hear, &heard), -1);
    assert_int_equal(settings_read(&s, folder, hear, &heard), -1);
    snprintf(text, sizeof text, "error %s: No such file or directory\nerror %s: Is a directory\n",
             path, folder);
    assert_string_equal(heard.text, text);

    char *large = malloc(SETTINGS_FILE_MAX + 2);
    assert_non_null(large);
    memset(large, '#', SETTINGS_FILE_MAX + 1);
    large[SETTINGS_FILE_MAX + 1] = 0;
    write_file(path, large);
    free(large);
    heard = (struct heard){0};
    assert_int_equal(settings_read(&s, path, hear, &heard), -1);
    snprintf(text, sizeof text, "error %s: larger than 1048576 bytes\n", path);
    assert_string_equal(heard.text, text);
    unlink(path);
    rmdir(folder);
    will_not_settle("dynamicConfigFile=/x", "only a zoo.cfg can name another file");
}

/* ---- Anything ---- */

static void garbage_does_no_harm(void **state) {
    static const char *const parts[] = {"server.1",   "=",     ":",  "\\",     "\n",    "\\u00",
                                        "group.1",    "a:1:2", ";",  "listen", "[::1]", ",",
                                        "clientPort", "1",     "\r", "!",      "#",     "\\ud83d",
                                        "zookeeper.", " ",     "*",  "dataDir"};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 11);
    for (int round = 0; round < 20000; round++) {
        char text[256] = "", error[SETTINGS_ERROR_MAX];
        struct settings s;
        struct heard heard;
        for (size_t count = rng_next(&rng) % 20; count; count--)
            strcat(text, parts[rng_next(&rng) % COUNT(parts)]);
        settings_default(&s);
        parse_bytes_of(&s, text, strlen(text), &heard);
        settings_settle(&s, error, sizeof error);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(every_number_is_taken),
        cmocka_unit_test(every_other_value_is_taken),
        cmocka_unit_test(sessions_follow_the_tick_wherever_it_stands),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(long_texts_are_refused_and_not_repeated),
        cmocka_unit_test(errors_fit_whatever_room_there_is),
        cmocka_unit_test(unknown_keys_are_named_and_passed_over),
        cmocka_unit_test(what_is_stored_and_not_used_is_told),
        cmocka_unit_test(the_last_of_two_values_counts),
        cmocka_unit_test(what_lets_strangers_in_is_told),
        cmocka_unit_test(addresses_without_effect_are_told),
        cmocka_unit_test(credentials_without_effect_are_told),
        cmocka_unit_test(a_super_user_that_nobody_can_be_is_told),
        cmocka_unit_test(every_key_is_listed_with_its_meaning),
        cmocka_unit_test(timeouts_suit_each_other),
        cmocka_unit_test(unknown_keys_are_named_below_known_prefixes),
        cmocka_unit_test(what_has_no_meaning_here_is_told),
        cmocka_unit_test(a_server_has_one_line),
        cmocka_unit_test(lines_are_those_of_properties),
        cmocka_unit_test(lines_are_counted_as_an_editor_does),
        cmocka_unit_test(what_is_not_text_is_refused),
        cmocka_unit_test(listeners_come_from_ports_and_addresses),
        cmocka_unit_test(metrics_have_an_address_of_their_own),
        cmocka_unit_test(addresses_that_are_none),
        cmocka_unit_test(tls_needs_its_files),
        cmocka_unit_test(words_are_allowed_or_not),
        cmocka_unit_test(members_are_kept),
        cmocka_unit_test(members_that_are_none),
        cmocka_unit_test(members_fit_together),
        cmocka_unit_test(links_need_credentials),
        cmocka_unit_test(the_number_is_in_the_data),
        cmocka_unit_test(files_are_read_with_the_one_they_name),
        cmocka_unit_test(garbage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
