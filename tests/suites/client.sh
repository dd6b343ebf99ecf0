# The client library as its users meet it: built, linked, against Conclave and against ZooKeeper, with TLS and SASL.  Its unit
# tests (test_client*) try it against a server of its own.
. tests/wire/server.bash
mine=$WORK/certificates
python=/usr/bin/python3
if [ -n "${SANITIZED:-}" ]; then
    echo "ok the library as its users build it has no sanitizers; its unit tests have"
    exit 0
fi

# ---- What is built ----
only_the_interface_is_visible() {
    local strangers
    strangers=$(nm -D --defined-only "$B/libconclave.so" | awk '$2 != "A" && $3 !~ /^cv_[a-z_]+@@CONCLAVE_0\.1$/') &&
        [ -z "$strangers" ] || { echo "$strangers"; return 1; }
    strangers=$(nm -g --defined-only "$B/libconclave.a" | awk 'NF == 3 && $3 !~ /^cv_/')
    [ -z "$strangers" ] || { echo "$strangers"; return 1; }
}

# Whatever the header declares is there.
all_of_it_is_there() {
    local missing
    missing=$(comm -23 <(grep -ohE '^CV_API .*|^ *cv_[a-z_]+\(' include/conclave.h include/conclave/peer.h | grep -oE '\bcv_[a-z_]+\(' | tr -d '(' | sort -u) \
        <({ nm -D --defined-only "$B/libconclave.so" | awk '{sub("@@.*", "", $3); print $3}'
            sed -nE 's/^static inline struct cv_op (cv_[a-z_]+)\(.*/\1/p' include/conclave.h; } | sort -u))
    [ -z "$missing" ] || { echo "declared, but not in the library:" $missing; return 1; }
}

header_is_clean() { # HEADER
    echo "#include \"$1\"" | gcc -std=c99 -Wall -Wextra -Werror -pedantic -Iinclude -fsyntax-only -x c - &&
        { ! command -v g++ >/dev/null || echo "#include \"$1\"" | g++ -Wall -Iinclude -fsyntax-only -x c++ -; }
}

links_statically() {
    gcc -Iinclude -o "$WORK/static" examples/watch.c "$B/libconclave.a" -lssl -lcrypto -lm -pthread &&
        ! ldd "$WORK/static" | grep -E 'conclave|libuv' &&
        gcc -Iinclude -o "$WORK/static" examples/peer_lock.c "$B/libconclave.a" -lssl -lcrypto -luv -lm -pthread &&
        ! ldd "$WORK/static" | grep conclave
}

# A program may have functions of the same names as those inside the library.
names_do_not_clash() {
    cat >"$WORK/clash.c" <<'C'
#include <conclave.h>
#include <string.h>
int table_grow(void) { return 7; }
int session_begin(void) { return 7; }
int main(void) { return table_grow() + session_begin() != 14 || strcmp(cv_error_text(0), "no error"); }
C
    gcc -Iinclude -o "$WORK/clash" "$WORK/clash.c" "$B/libconclave.a" -lssl -lcrypto -lm -pthread && "$WORK/clash"
}

check "only what the header declares is visible" only_the_interface_is_visible
check "the library has all that the header declares" all_of_it_is_there
check "the header is clean C99 and C++" header_is_clean conclave.h
check "that of peers, too" header_is_clean conclave/peer.h
check "a program can be linked statically" links_statically
check "names inside the library do not clash with a program's" names_do_not_clash
check "the probe compiles" gcc -std=gnu17 -Wall -Wextra -Werror -Iinclude -o "$WORK/probe" tests/net/client_probe.c \
    -L"$B" -lconclave -Wl,-rpath,"$(realpath "$B")"
probe() { timeout "$LIMIT" "$WORK/probe" "$@"; }

# ---- Examples, against both ----
kept_lines() {
    printf 'one\ntwo\n' | timeout "$LIMIT" "$B/examples/own_loop" /examples >"$WORK/lines" &&
        grep -x '/examples/line-0000000000' "$WORK/lines" && grep -x '/examples/line-0000000001' "$WORK/lines"
}
python_example() {
    LIBCONCLAVE=$B/libconclave.so timeout "$LIMIT" "$python" examples/conclave.py /examples/py hello >"$WORK/py" &&
        [ "$(cat "$WORK/py")" = $'hello\nhello, changed' ]
}
watched() {
    : >"$WORK/watched" # what was there before is of another server
    timeout "$LIMIT" "$B/examples/watch" /examples/py 2 >"$WORK/watched" &
    await grep -q 'hello, changed' "$WORK/watched" && python_example && wait $! &&
        [ "$(wc -l <"$WORK/watched")" -eq 2 ]
}
# Two at once: the second waits for the first, and its token is greater.
locked() {
    : >"$WORK/first" # likewise
    timeout "$LIMIT" "$B/examples/lock" example 1 >"$WORK/first" &
    await grep -q held "$WORK/first" && timeout "$LIMIT" "$B/examples/lock" example 0 >"$WORK/second" && wait $! &&
        [ "$(sed -n 's/^held, token //p' "$WORK/second")" -gt "$(sed -n 's/^held, token //p' "$WORK/first")" ]
}
examples() { # NAME SERVER
    export CONCLAVE_SERVER=$2
    check "$1: an own loop" kept_lines
    check "$1: Python" python_example
    check "$1: a watch" watched
    check "$1: a lock" locked
}

# ---- Certificates ----
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$mine/$1.key"; }
authority() { key "$1" && openssl req -x509 -days 1 -key "$mine/$1.key" -subj "/CN=$1" -out "$mine/$1.pem"; }
certified() { # NAME AUTHORITY [OPTION...]
    key "$1" && openssl req -x509 -days 1 -key "$mine/$1.key" -subj "/CN=$1" -out "$mine/$1.pem" -CA "$mine/$2.pem" \
        -CAkey "$mine/$2.key" -addext basicConstraints=critical,CA:FALSE "${@:3}"
}
certificates() {
    umask 077
    mkdir -p "$mine" && authority ca && authority strangers && certified ann ca && certified eve strangers &&
        certified server ca -addext subjectAltName=DNS:localhost && cat "$mine/ca.pem" >"$mine/trusted.pem"
}
shows() { # TEXT COMMAND...: it succeeds and prints that
    local text=$1
    shift
    "$@" >"$WORK/shown" && grep -q -- "$text" "$WORK/shown"
}
# What is refused is tried again and again, and the last reason is told.  On a busy machine it takes longer to get one.
refused() { # TEXT PROBE-ARGUMENT...
    local ms
    for ms in 3000 12000 $((PATIENCE * 1000)); do
        CONNECT_MS=$ms says "$1" 1 probe "${@:2}" && return
    done
    return 1
}
never_in() { # TEXT COMMAND...: one of a client that is refused, likewise
    local s
    for s in 1 8 "$PATIENCE"; do
        says "$1" 69 "$CONCLAVE" "${@:2}" --connect-timeout "${s}s" && return
    done
    return 1
}

# ---- The commands ----
secured() { # PORT COMMAND...: one of a client with a certificate
    timeout "$LIMIT" "$CONCLAVE" "${@:2}" --connect-timeout "${PATIENCE}s" --server "localhost:$1" --tls-ca "$mine/ca.pem" --tls-cert "$mine/ann.pem" \
        --tls-key "$mine/ann.key"
}
locks_with_tls() {
    local name
    name=$(timeout "$LIMIT" "$CONCLAVE" lock x --connect-timeout "${PATIENCE}s" --server "localhost:$1" --tls-ca "$mine/ca.pem" --tls-cert "$mine/ann.pem" \
        --tls-key "$mine/ann.key" -- printenv CONCLAVE_LOCK) && [ "$name" = x ]
}
keeps_secrets() { # PORT: what only the certificate's owner may read
    secured "$1" create /ann hidden --acl x509:CN=ann:cdrwa && [ "$(secured "$1" get /ann)" = hidden ] && secured "$1" rm /ann
}
in_a_context() {
    XDG_CONFIG_HOME=$WORK/config
    export XDG_CONFIG_HOME
    "$CONCLAVE" context add "secure$1" --server "localhost:$1" --tls-ca "$mine/ca.pem" --tls-cert "$mine/ann.pem" \
        --tls-key "$mine/ann.key" && timeout "$LIMIT" "$CONCLAVE" ls / --connect-timeout "${PATIENCE}s" --context "secure$1" >"$WORK/shown" && grep -q zookeeper "$WORK/shown"
}
commands_with_tls() { # NAME PORT
    check "$1: a command with TLS" secured "$2" stat /
    check "$1: a lock with TLS" locks_with_tls "$2"
    check "$1: an ACL of certificates" keeps_secrets "$2"
    check "$1: a context with TLS" in_a_context "$2"
    check "$1: a command without a certificate" never_in "(TLS: " stat / --server "localhost:$2" --tls-ca "$mine/ca.pem"
    check "$1: a command that trusts another authority" never_in "certificate" stat / --server "localhost:$2" --tls-ca "$mine/strangers.pem"
}
with_sasl() { # PASSWORD COMMAND...
    (umask 077 && echo "$1" >"$WORK/password.$1")
    timeout "$LIMIT" "$CONCLAVE" "${@:2}" --connect-timeout "${PATIENCE}s" --server "$ADDRESS:$port" --sasl-user ann --sasl-password-file "$WORK/password.$1"
}
commands_with_sasl() {
    check "a command with SASL" with_sasl secret create /sasl hidden --acl sasl:ann:cdrwa
    check "what SASL's user has is hers" says "its ACL does not allow this" 77 "$CONCLAVE" get /sasl --server "$ADDRESS:$port"
    check "a command with SASL reads it" shows hidden with_sasl secret get /sasl
    check "a command with a wrong password" says "" 77 with_sasl wrong get /sasl
}

# ---- Conclave ----
check "certificates are made" certificates
start_server --set extendedTypesEnabled=true --http off --tls-listen 127.0.0.1:0 --tls-cert "$mine/server.pem" \
    --tls-key "$mine/server.key" --tls-ca "$mine/ca.pem"
SECURE=$(sed -nE 's/.*127\.0\.0\.1:([0-9]+) \(TLS\).*/\1/p; s/.*TLS on 127\.0\.0\.1:([0-9]+).*/\1/p' "$WORK/server.out" | head -1)
examples Conclave "$AT"
as_ann=(cert="$mine/ann.pem" key="$mine/ann.key")
check "TLS: both ends show certificates" shows CN=ann probe "localhost:$SECURE" ca="$mine/ca.pem" "${as_ann[@]}"
check "TLS: we have none" refused "certificate required" "localhost:$SECURE" ca="$mine/ca.pem"
check "TLS: the server does not trust ours" refused "unknown ca" "localhost:$SECURE" ca="$mine/ca.pem" cert="$mine/eve.pem" key="$mine/eve.key"
check "TLS: another host's certificate" refused "IP address mismatch" "127.0.0.1:$SECURE" ca="$mine/ca.pem" "${as_ann[@]}"
check "TLS: any host's certificate, if that is wanted" shows ip:127.0.0.1 probe "127.0.0.1:$SECURE" ca="$mine/ca.pem" "${as_ann[@]}" any
check "TLS: a server that we do not trust" refused "self-signed certificate" "localhost:$SECURE" ca="$mine/strangers.pem"
check "TLS: where there is none" refused "TLS: " "$AT" ca="$mine/ca.pem" any
check "plain, where TLS is expected" refused "no server answers: localhost:$SECURE (" "localhost:$SECURE"
check "TLS: no such file" refused "/nonexistent, the authorities of TLS" "localhost:$SECURE" ca=/nonexistent
check "TLS: a key of another" refused "the key: key values mismatch" "localhost:$SECURE" ca="$mine/ca.pem" cert="$mine/ann.pem" key="$mine/eve.key"
check "SASL: a server that does not have it" refused "refused: $AT" "$AT" sasl=ann secret
commands_with_tls Conclave "$SECURE"
stop_server

# ---- ZooKeeper, with SASL and TLS ----
cat >"$WORK/jaas" <<'END'
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_ann="secret";
};
END
export ADDRESS
read -r ADDRESS port < <(/usr/bin/python3 tests/wire/places.py 2)
cat "$mine/server.pem" "$mine/server.key" >"$mine/both.pem"
netty=$(printf 'netty-%s ' common buffer transport transport-native-unix-common handler codec resolver)
secure=$(/usr/bin/python3 tests/wire/places.py 1 anywhere) # clients call the server "localhost"
JARS=$netty SETTINGS="secureClientPort=$secure
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=$mine/both.pem
ssl.trustStore.location=$mine/ca.pem" \
JAVA_TOOL_OPTIONS="-Djava.security.auth.login.config=$WORK/jaas -Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider" \
    tests/wire/reference "$WORK/zookeeper" "$port" >"$WORK/zookeeper.log" 2>&1 &
zookeeper=$!
trap 'kill "$zookeeper" 2>/dev/null; wait' EXIT
check_first "ZooKeeper answers" await listens "$port"
examples ZooKeeper "$ADDRESS:$port"
check "SASL: the password is right" shows sasl:ann probe "$ADDRESS:$port" sasl=ann secret
check "SASL: the password is wrong" refused "authentication" "$ADDRESS:$port" sasl=ann wrong
CLIENT_SERVER=$ADDRESS:$port check "all that the library does, at ZooKeeper" bounded "$B/tests/test_client"
commands_with_tls ZooKeeper "$secure"
commands_with_sasl
