# Four-letter words, and pages over HTTP.
. tests/wire/server.bash
questions() { bounded /usr/bin/python3 "tests/wire/$1.py" "${@:2}"; }
http_at() { sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out"; }

# ask WORD: what the server at AT answers.
ask() { exec 3<>"/dev/tcp/${AT%:*}/${AT##*:}" && printf '%s' "$1" >&3 && cat <&3; }
answers() { # WORD, what the answer is, NEWLINE included
    local answer
    answer=$(ask "$1"; echo .)
    [ "$answer" = "$2." ] || { echo "$1: $answer"; return 1; }
}
is_page() { # STATUS PATH CURL-OPTION...
    local wanted=$1 path=$2 status
    shift 2
    status=$(curl -s -o "$WORK/page" -w '%{http_code}' "$@" "http://$HTTP$path")
    [ "$status" = "$wanted" ] || { echo "$path: $status, not $wanted"; cat "$WORK/page"; return 1; }
}
has_header() { # HEADER PATH CURL-OPTION...
    local header=$1 path=$2
    shift 2
    curl -s -o /dev/null -D - "$@" "http://$HTTP$path" | tr -d '\r' | grep -qix "$header"
}
page() { curl -sf "http://$HTTP$1"; }

# The loop waits for the disk itself, however slow that is: the metrics are to have seen it do so.
start_server --set 4lw.commands.whitelist='*' --set tickTime=500 --set maxSessionTimeout=30000 --http 127.0.0.1:0 \
    --set admin.hosts='other.example, metrics.example' --set fsync.waitmicros=2147483647
HTTP=$(http_at)
for program in words pages; do
    tests=$(questions $program --list)
    check "$program: there are tests" test -n "$tests"
    for test in $tests; do check_alone "$program: $test" questions $program "$AT" "$HTTP" "$test"; done
done

check "metrics: content type" has_header 'content-type: text/plain; version=0.0.4; charset=utf-8' /metrics
check "JSON: content type" has_header 'content-type: application/json' /status
check "the list of pages" is_page 200 /
check "... has the commands" grep -q 'href="/commands/monitor"' "$WORK/page"
check "status" json '.version and .nodes >= 4 and (.log.directory | length > 0)' page /status
check "a command" json '.command == "ruok" and .error == null' page /commands/ruok
check "a command by its word" json '.command == "monitor" and .znode_count >= 4' page /commands/mntr
check "no such page" is_page 404 /nothing
check "a host that is not this one is refused" is_page 421 /metrics -H 'Host: rebound.example:8080'
check "... also where its name begins like ours" is_page 421 /status -H 'Host: localhost.example'
check "... and is counted" bash -c 'curl -s "http://$1/metrics" | grep -q "^refused_total{reason=.host.} [1-9]"' - "$HTTP"
for host in localhost LocalHost:1 a.localhost "[::1]:8080" 192.0.2.7 "$(hostname)" "$(hostname)." metrics.example; do
    check "the host $host" is_page 200 /status -H "Host: $host"
done
check "no host" is_page 200 /status -0 -H 'Host:'
check "no such command" is_page 404 '/commands/%3Cscript%3E'
check "... whose name is not repeated" bash -c '! grep -q script "$1"' - "$WORK/page"
check "no files are served" is_page 404 /../../etc/passwd --path-as-is
check "nothing can be reset over HTTP" is_page 403 /commands/stat_reset
check "POST is not answered" is_page 405 /metrics -d x=1
check "... and the answer lists the methods" has_header 'allow: GET, HEAD' /metrics -X DELETE
check "a request with a body is refused" is_page 400 /metrics -X GET -d x=1
check "... also a command" is_page 400 /ensemble/remove/1 -d x=1
check "HEAD" is_page 200 /metrics -I
keeps_connections() { [ "$(curl -s -o /dev/null -o /dev/null -w '%{num_connects}\n' "http://$HTTP/status" "http://$HTTP/status" | paste -sd+)" = 1+0 ]; }
check "connections are kept alive" keeps_connections
small() { [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server_pid/status")" -lt 16384 ]; }
[ -n "${SANITIZED:-}" ] || check "memory stays below 16 MiB" small

# A second server, with ports that are in use.
does_not_start() { exits 3 bounded "$CONCLAVE" serve --data "$WORK/second" "$@"; }
starts() { # OPTION...: it serves, and ends well when it is told to
    local second
    rm -f "$WORK/second.out"
    "$CONCLAVE" serve --data "$WORK/second" "$@" >"$WORK/second.out" 2>"$WORK/second.err" &
    second=$!
    started_or_gone() { grep -qs "serving clients" "$WORK/second.out" || ! kill -0 "$second" 2>/dev/null; }
    await started_or_gone
    kill "$second"
    wait "$second"
}
check "the clients' port is in use: the server does not start" does_not_start --listen "$AT" --http off
# What the disk has not done yet keeps no server that does not start.
slowly() {
    gcc -O2 -D_GNU_SOURCE -shared -fPIC -o "$WORK/slow_disk.so" tests/net/slow_disk.c || return 1
    for _ in 1 2 3 4; do
        rm -rf "$WORK/second"
        exits 3 bounded env LD_PRELOAD="$WORK/slow_disk.so" SYNC_MS=300 "$CONCLAVE" serve --data "$WORK/second" --listen "$AT" --http off || return 1
    done
}
[ -n "${SANITIZED:-}" ] || check "... and ends, however slow the disk is" slowly
check "the port of HTTP is in use: the server starts" starts --listen 127.0.0.1:0 --http "$HTTP"
check "... and logs a warning" grep -q "warning HTTP is not served.* host=${HTTP%:*} port=${HTTP##*:} reason=\"address already in use\"" "$WORK/second.err"
check "... and does not announce HTTP" bash -c 'grep -q "serving clients" "$1" && ! grep -q HTTP "$1"' - "$WORK/second.out"
check "a log in JSON" starts --listen 127.0.0.1:0 --http off --log-level debug --log-format json
check "... has an object per line" jq -se 'any(.[]; .level == "info" and .message == "the server has started" and .nodes >= 4)' "$WORK/second.err"
check "a log of errors only" starts --listen 127.0.0.1:0 --http off --set log.level=error
check "... is empty" test ! -s "$WORK/second.err"
check "not a log level" says "log.level: 'loud' is not error, warning, info or debug" 2 "$CONCLAVE" serve --log-level loud
check "not a log format" says "log.format: 'xml' is not text or json" 2 "$CONCLAVE" serve --log-format xml
check "all words are warned of" grep -q "warning every client may use all four-letter words.* setting=4lw" "$WORK/server.err"
stop_server

start_server --http off
check "a server for this machine alone has nothing to warn of" bash -c '! grep warning "$1" | grep -qv "was busy for long"' - "$WORK/server.err"
check "by default srvr is allowed" bash -c '[[ $1 == *"Mode: standalone"* ]]' - "$(ask srvr)"
for word in ruok conf cons crst dirs dump envi gtmk hash isro mntr srst stat wchc wchp wchs; do
    check "by default $word is not" answers $word "$word is not executed because it is not in the whitelist.
"
done
check "HTTP can be off" test -z "$(http_at)"
idle_is_small() { [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server_pid/status")" -lt 10240 ]; }
stop_server

start_server --http 127.0.0.1:0 --set 4lw.commands.whitelist='ruok, isro,nosuch'
check "a word in the list" answers ruok imok
check "another word in the list" answers isro rw
check "a word that there is not is warned of" grep -q "warning there is no such four-letter word word=nosuch setting=4lw" "$WORK/server.err"
check "... and no other one" test "$(grep -c "no such four-letter word" "$WORK/server.err")" = 1
check "a word that is not in the list" answers srvr "srvr is not executed because it is not in the whitelist.
"
[ -n "${SANITIZED:-}" ] || check "memory of an idle server is below 10 MiB" idle_is_small
stop_server

# As in ZooKeeper, a port without an address is every address, of both kinds.
start_both_kinds() {
    port=$(/usr/bin/python3 tests/wire/places.py 1 anywhere)
    starts_at() { exec 3<>"/dev/tcp/$1/$port" && printf ruok >&3 && [ "$(cat <&3)" = imok ]; }
    "$CONCLAVE" serve --data "$WORK/both" --http off --set clientPort=$port --set 4lw.commands.whitelist=ruok,cons \
        >"$WORK/both.out" 2>"$WORK/both.err" &
    both=$!
    serves_both() { [ -s "$WORK/both.out" ] || ! kill -0 "$both" 2>/dev/null; }
    await serves_both
    trap 'kill "$both" 2>/dev/null; wait' EXIT
}
knows_address() { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf cons >&3 && grep -q '^ /127\.0\.0\.1:[0-9]*\[' <&3; }
for _ in 1 2 3 4 5; do start_both_kinds; grep -q "serving" "$WORK/both.out" && break; done # another one may have the port
check "a port without an address: IPv4" starts_at 127.0.0.1
if [ -e /proc/net/if_inet6 ] && grep -q '^0\{31\}1 ' /proc/net/if_inet6; then
    check "... and IPv6" starts_at ::1
else
    skip "IPv6 is not there"
fi
check "... and clients by IPv4 are called as ever" knows_address
check "... and that is warned of" grep -q "warning clients can connect from anywhere.* setting=listen" "$WORK/both.err"
kill "$both"; wait "$both"
trap - EXIT
check "not an address for HTTP" says "listen.http:" 2 "$CONCLAVE" serve --data "$WORK/data" --http nowhere
