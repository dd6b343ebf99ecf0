# TLS: good and bad certificates and clients, and messages about unusable files.
. tests/wire/server.bash
python=/usr/bin/python3
mine=$WORK/certificates

# ---- Certificates ----
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

# certificate NAME SUBJECT AUTHORITY [OPTION...]: NAME.pem and NAME.key, good for a day.
certificate() {
    local name=$mine/$1 subject=$2 authority=$mine/$3
    shift 3
    key "$name.key" &&
        openssl req -x509 -utf8 -multivalue-rdn -days 1 -key "$name.key" -subj "$subject" -out "$name.pem" \
            -CA "$authority.pem" -CAkey "$authority.key" -addext basicConstraints=critical,CA:FALSE "$@"
}

authority() { key "$mine/$1.key" && openssl req -x509 -days 1 -key "$mine/$1.key" -subj "/CN=$1" -out "$mine/$1.pem"; }

# Names, and how Java's X500Principal.getName() writes them.
names() {
    local number=0 subject name
    while IFS= read -r subject && IFS= read -r name; do
        certificate "name$number" "$subject" ca || return 1
        printf '%s\n' "$name" >>"$mine/names"
        number=$((number + 1))
    done <<'NAMES'
/C=CH/ST=st/L=l/street=s/O=o/OU=u/CN=cn/UID=uid/DC=dc
DC=dc,UID=uid,CN=cn,OU=u,O=o,STREET=s,L=l,ST=st,C=CH
/C=CH/CN= blanks  /O=A, B\+C=D <x>;"q" #h
O=A\, B\+C\=D \<x\>\;\"q\" \#h,CN=\ blanks\ \ ,C=CH
/CN=#a\\b\/c
CN=\#a\\b/c
/CN=two+OU=unit+O=org/CN=Zürich
CN=Zürich,CN=two+O=org+OU=unit
/emailAddress=a@b/title=t/CN=mail/serialNumber=12
2.5.4.5=#13023132,CN=mail,2.5.4.12=#0c0174,1.2.840.113549.1.9.1=#1603614062
NAMES
}

late_certificate() {
    key "$mine/late.key" &&
        openssl req -new -key "$mine/late.key" -subj /CN=late -out "$WORK/late.csr" &&
        openssl x509 -req -days -1 -in "$WORK/late.csr" -CA "$mine/ca.pem" -CAkey "$mine/ca.key" -out "$mine/late.pem"
}

certificates() {
    umask 077
    mkdir -p "$mine"
    authority ca && authority strangers && names && late_certificate &&
        certificate localhost /CN=localhost ca -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
            -addext extendedKeyUsage=serverAuth &&
        certificate alice '/C=CH/O=Acme, Inc./CN=alice' ca && certificate bob /CN=bob ca &&
        certificate stranger '/C=CH/O=Acme, Inc./CN=alice' strangers &&
        openssl pkey -in "$mine/localhost.key" -aes256 -passout pass:sesame -out "$mine/locked.key" &&
        openssl genrsa -out "$mine/rsa.key" 2048 &&
        cat "$mine/alice.key" "$mine/alice.pem" >"$mine/alice-both.pem" &&
        cat "$mine/locked.key" "$mine/localhost.pem" >"$mine/store.pem"
}

# ---- Unusable files ----
serve() { exec timeout "$LIMIT" "$CONCLAVE" serve --data "$WORK/other" --set listen.http=off --tls-listen 127.0.0.1:0 "$@"; }
serve_with() { serve --tls-cert "$mine/$1" --tls-key "$mine/$2" "${@:3}"; }
bad() { says "$1" 3 serve_with "${@:2}"; }

with_environment() { CONCLAVE_TLS_PASSWORD=sesame serve_with "$@"; }

# starts WARNING COMMAND...: it serves, with that in its log, or with no warning if that is empty.
starts() {
    local warning=$1 pid
    shift
    : >"$WORK/starts.out"
    "$@" >"$WORK/starts.out" 2>"$WORK/starts.err" &
    pid=$!
    started_or_gone() { [ -s "$WORK/starts.out" ] || ! kill -0 "$pid" 2>/dev/null; }
    await started_or_gone
    kill "$pid"
    wait "$pid"
    tee -a "$WORK/all.err" <"$WORK/starts.err"
    grep -q "(TLS)" "$WORK/starts.out" || return 1
    # On a busy machine a server may also warn that it was busy for long.
    if [ -z "$warning" ]; then ! grep warning "$WORK/starts.err" | grep -qv "was busy for long"; return; fi
    grep -q "warning.*$warning" "$WORK/starts.err"
}

files() {
    echo "no certificate" >"$mine/text.pem"
    printf 'sesame\n' >"$WORK/password"
    printf 'open\n' >"$WORK/wrong"
    chmod 600 "$WORK/password" "$WORK/wrong"
    install -m 644 "$WORK/password" "$WORK/seen"
    cp "$mine/localhost.key" "$mine/seen.key" && chmod 644 "$mine/seen.key"
    printf '%s\n' listen.http=off listen.tls=127.0.0.1:0 "dataDir=$WORK/other" \
        "ssl.keyStore.location=$mine/store.pem" ssl.keyStore.password=sesame >"$WORK/zoo.cfg"

    check "no certificate named" says "TLS needs a certificate" 2 serve
    check "no such certificate" bad 'none.pem purpose=certificate reason="No such file' none.pem localhost.key
    check "not a certificate" bad 'text.pem purpose=certificate reason="nothing of that kind' text.pem localhost.key
    check "no such key" bad 'none.key purpose="private key" reason="No such file' localhost.pem none.key
    check "not a key" bad 'alice.pem purpose="private key" reason="nothing of that kind' localhost.pem alice.pem
    check "another's key" bad 'alice.key certificate=' localhost.pem alice.key
    check "a key of another kind" bad 'rsa.key certificate=' localhost.pem rsa.key
    check "a locked key" bad 'locked.key purpose="private key" reason="it needs a password' localhost.pem locked.key
    check "a wrong password" bad "the password is wrong" localhost.pem locked.key --tls-password-file "$WORK/wrong"
    check "no such authorities" bad 'none purpose=authorities reason="No such file' localhost.pem localhost.key \
        --tls-ca "$mine/none"
    check "authorities without any" bad 'text.pem purpose=authorities reason="no certificate' \
        localhost.pem localhost.key --tls-ca "$mine/text.pem"
    check "clients must show certificates, without authorities" says "needs ssl.trustStore.location" 2 \
        serve_with localhost.pem localhost.key --tls-clients need
    check "not a way to ask for certificates" says "'all' is not need, want or none" 2 serve --tls-clients all
    check "no file with a password" says "none: No such file" 2 serve --tls-password-file "$WORK/none"
    check "a password on the command line" says "everybody on this machine can see a command line" 2 \
        serve --set ssl.keyStore.password=sesame
    check "a password from a file" starts "" serve_with localhost.pem locked.key --tls-password-file "$WORK/password"
    member() { # of an ensemble whose other member is not there
        serve_with localhost.pem localhost.key --id 1 --ensemble "1=127.0.0.1:$(/usr/bin/python3 tests/wire/places.py 1 anywhere),2=127.0.0.1:1" \
            --peer-tls-ca "$mine/ca.pem" --peer-tls-cert "$mine/localhost.pem" --peer-tls-key "$mine/locked.key" --data "$WORK/member" \
            --log-level error --set "$1"
    }
    check "a password between servers" starts "" member ensemble.certificateKeyPasswordFile="$WORK/password"
    check "a wrong password between servers" says "the password is wrong" 3 \
        member ensemble.certificateKeyPasswordFile="$WORK/wrong"
    check "no such file with a password" says 'none purpose=password reason="No such file' 3 \
        member ssl.quorum.keyStore.passwordPath="$WORK/none"
    check "a password from the environment" starts "" with_environment localhost.pem locked.key
    check "a password from a zoo.cfg" starts "" "$CONCLAVE" serve --config "$WORK/zoo.cfg"
    check "no password in a log" bash -c 'grep -q started "$0" && ! grep -q sesame "$0"' "$WORK/all.err"
    check "a password that everybody may read" starts "everybody.*$WORK/seen purpose=password" \
        serve_with localhost.pem locked.key --tls-password-file "$WORK/seen"
    check "a key that everybody may read" starts "everybody.*seen.key" serve_with localhost.pem seen.key
    check "a certificate out of date" starts "the certificate has expired.*late.pem" serve_with late.pem late.key
}

# ---- Clients ----
# answers TEXT WORDS OPTION...: openssl, given the words, prints that text.  A key is a command to it only if it reads
# nothing else with it, so what it prints is waited for; its end of input is the end of the connection.
said() { grep -q "$1" "$WORK/s_client"; }
answers() {
    local text=$1 words=$2 word
    shift 2
    : >"$WORK/s_client"
    {
        for word in $words; do
            printf '%b' "$word"
            if [ "$word" = 'K\n' ]; then await said KEYUPDATE; fi
        done
        await said "$text"
    } 2>"$WORK/await" | bounded openssl s_client -connect "$tls" -CAfile "$mine/ca.pem" \
        -cert "$mine/alice.pem" -key "$mine/alice.key" "$@" >"$WORK/s_client" 2>&1
    said "$text" || { echo "no '$text' in:"; cat "$WORK/s_client"; return 1; }
}

# ZooKeeper's command line, in Java.
java_client() {
    local jars=/usr/share/java jar path
    path=$jars/zookeeper.jar:$jars/slf4j-nop.jar:$jars/commons-cli.jar
    for jar in common buffer transport transport-native-unix-common handler codec resolver; do
        path+=:$jars/netty-$jar.jar
    done
    printf 'create /java value x509:CN\\=alice:r\nwhoami\nget /java\nquit\n' |
        bounded java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dzookeeper.client.secure=true \
            -Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty \
            -Dzookeeper.ssl.keyStore.location="$mine/alice-both.pem" \
            -Dzookeeper.ssl.trustStore.location="$mine/ca.pem" -cp "$path" \
            org.apache.zookeeper.ZooKeeperMain -server "localhost:${tls##*:}" >"$WORK/java.out" 2>&1
    cat "$WORK/java.out"
    grep -qF 'x509: CN=alice,O=Acme\, Inc.,C=CH' "$WORK/java.out" && grep -q '^Created /java' "$WORK/java.out"
}

sockets() { ls -l "/proc/$server_pid/fd" | grep -c socket; }

# none_left COUNT: as many sockets as that are open, in the end.
as_many() { [ "$(sockets)" -eq "$1" ]; }
none_left() { await as_many "$1" || { echo "$(sockets) sockets, not $1"; return "$LATE"; }; }

few_lines() { # however many fail, one line a second
    local seconds=$1 lines
    lines=$(grep -c 'TLS refused' "$WORK/server.err")
    [ "$lines" -ge 1 ] && [ "$lines" -le $((seconds + 1)) ] || { echo "$lines lines in $seconds s"; return 1; }
}

# Another server takes both kinds on one port.
start_both() {
    "$CONCLAVE" serve --data "$WORK/both" --set listen.http=off --listen 127.0.0.1:0 --tls-same-port \
        --tls-cert "$mine/localhost.pem" --tls-key "$mine/localhost.key" --tls-ca "$mine/ca.pem" \
        --tls-clients want >"$WORK/both.out" 2>"$WORK/both.err" &
    both_pid=$!
    trap 'kill "$server_pid" "$both_pid" 2>/dev/null; wait' EXIT
    prints_both() {
        both=$(sed -n 's/^conclave: serving clients on \([0-9.:]*\) (plain or TLS);.*/\1/p' "$WORK/both.out")
        [ -n "$both" ] || ! kill -0 "$both_pid" 2>/dev/null
    }
    await prints_both
}

was_silent() { [ "$1" -eq 0 ] || { cat "$WORK/silence"; return "$1"; }; } # STATUS
one() { bounded "$python" tests/wire/tls.py "$AT" "$tls" "$both" "$mine" "$server_pid" "$1"; }

clients() {
    local name before begun silence
    start_server --set listen.http=off --set 4lw.commands.whitelist=ruok,mntr --tls-listen 127.0.0.1:0 \
        --tls-cert "$mine/localhost.pem" --tls-key "$mine/localhost.key" --tls-ca "$mine/ca.pem"
    tls=$(sed -n 's/.*, \([0-9.:]*\) (TLS);.*/\1/p' "$WORK/server.out")
    start_both
    check "both servers print their addresses" test -n "$tls" -a -n "$both"
    before=$(sockets) begun=$SECONDS
    one silence >"$WORK/silence" 2>&1 &
    silence=$!
    for name in $("$python" tests/wire/tls.py --list); do
        [ "$name" = silence ] || check_alone "client: $name" one "$name"
    done
    check "openssl: TLS 1.3" answers imok ruok -tls1_3 -quiet
    check "openssl: TLS 1.2" answers imok ruok -tls1_2 -quiet
    check "openssl: new keys" answers imok 'K\n ruok' -tls1_3
    check "openssl: no renegotiation" answers "no renegotiation" 'R\n' -tls1_2
    check "openssl: no compression" answers "Compression: NONE" '' -tls1_2
    check "Java" java_client
    wait "$silence"
    check "client: silence" was_silent $?
    check "all connections are gone" none_left "$before"
    check "failures are logged, at most one a second" few_lines $((SECONDS - begun))
    stop_server
    kill "$both_pid"
    wait "$both_pid"
    check "the other server served to the end" ended_well $?
}

replaced() {
    local name
    certificate renewed /CN=localhost ca -addext subjectAltName=DNS:localhost 2>"$WORK/renewed.err" || cat "$WORK/renewed.err"
    # Each has a key with a password of its own.  Files are looked at between ticks, which are far apart here.
    for name in localhost renewed; do
        openssl pkey -in "$mine/$name.key" -aes256 -passout "pass:of $name" -out "$mine/$name.locked"
        printf 'of %s\n' "$name" >"$mine/$name.password"
    done
    cp "$mine/localhost.pem" "$mine/live.pem" && cp "$mine/localhost.locked" "$mine/live.locked" &&
        cp "$mine/localhost.password" "$mine/live.password"
    start_server --set listen.http=off --set tickTime=100000 --tls-listen 127.0.0.1:0 --tls-cert "$mine/live.pem" \
        --tls-key "$mine/live.locked" --tls-password-file "$mine/live.password" --tls-ca "$mine/ca.pem"
    tls=$(sed -n 's/.*, \([0-9.:]*\) (TLS);.*/\1/p' "$WORK/server.out")
    check "files that are replaced are read again, and no connection is lost" \
        bounded "$python" tests/wire/reload.py "$tls" "$mine" "$server_pid" "$WORK/server.err"
    stop_server
}

check "certificates" certificates
files
clients
replaced
