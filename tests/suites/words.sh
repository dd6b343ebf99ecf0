# What operators and monitoring agents ask: four-letter words, and pages over HTTP.
. tests/wire/server.bash
questions() { timeout 100 /usr/bin/python3 "tests/wire/$1.py" "${@:2}"; }
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

start_server --set 4lw.commands.whitelist='*' --set tickTime=500 --http 127.0.0.1:0
HTTP=$(http_at)
for program in words pages; do
    tests=$(questions $program --list)
    check "$program: there are tests" test -n "$tests"
    for test in $tests; do check "$program: $test" questions $program "$AT" "$HTTP" "$test"; done
done

check "metrics have their type" has_header 'content-type: text/plain; version=0.0.4; charset=utf-8' /metrics
check "JSON has its type" has_header 'content-type: application/json' /status
check "a list" is_page 200 /
check "the list has all of them" grep -q 'href="/commands/monitor"' "$WORK/page"
check "status" json '.version and .nodes >= 4 and (.log.directory | length > 0)' page /status
check "a command" json '.command == "ruok" and .error == null' page /commands/ruok
check "a command by its word" json '.command == "monitor" and .znode_count >= 4' page /commands/mntr
check "no such page" is_page 404 /nothing
check "no such command" is_page 404 '/commands/%3Cscript%3E'
check "... which is not repeated" bash -c '! grep -q script "$1"' - "$WORK/page"
check "nothing is above the top" is_page 404 /../../etc/passwd --path-as-is
check "nothing is reset from afar" is_page 404 /commands/stat_reset
check "POST is not answered" is_page 405 /metrics -d x=1
check "... and what is, is said" has_header 'allow: GET, HEAD' /metrics -X DELETE
check "HEAD" is_page 200 /metrics -I
keeps_connections() { [ "$(curl -s -o /dev/null -o /dev/null -w '%{num_connects}\n' "http://$HTTP/status" "http://$HTTP/status" | paste -sd+)" = 1+0 ]; }
check "connections are kept" keeps_connections
small() { [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server_pid/status")" -lt 16384 ]; }
[ -n "${SANITIZED:-}" ] || check "after all that, memory is still little" small

# A second server, which finds ports taken.
takes_port() { # STATUS OPTION...: another server with these options ends so
    local wanted=$1
    shift
    exits "$wanted" timeout 2 "$CONCLAVE" serve --data "$WORK/second" "$@" >"$WORK/second.out" 2>"$WORK/second.err"
}
check "the clients' port is taken: an error" takes_port 3 --listen "$AT" --http off
check "the port of HTTP is taken: it goes on" takes_port 124 --listen 127.0.0.1:0 --http "$HTTP"
check "... and says so" grep -q "warning HTTP is not served on $HTTP: address already in use" "$WORK/second.err"
check "... and does not promise it" bash -c 'grep -q "serving clients" "$1" && ! grep -q HTTP "$1"' - "$WORK/second.out"
stop_server

start_server --http off
check "by default srvr is allowed" bash -c '[[ $1 == *"Mode: standalone"* ]]' - "$(ask srvr)"
for word in ruok conf cons crst dirs dump envi gtmk hash isro mntr srst stat wchc wchp wchs; do
    check "by default $word is not" answers $word "$word is not executed because it is not in the whitelist.
"
done
check "HTTP can be off" test -z "$(http_at)"
idle_is_small() { [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server_pid/status")" -lt 10240 ]; }
stop_server

start_server --http 127.0.0.1:0 --set 4lw.commands.whitelist='ruok, isro'
check "a word of the list" answers ruok imok
check "another" answers isro rw
check "not of the list" answers srvr "srvr is not executed because it is not in the whitelist.
"
[ -n "${SANITIZED:-}" ] || check "a server that does nothing is below 10 MiB" idle_is_small
stop_server
check "not an address for HTTP" says "listen.http:" 2 "$CONCLAVE" serve --data "$WORK/data" --http nowhere
