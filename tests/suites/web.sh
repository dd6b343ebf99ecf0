# The server's page, as a browser and its enemies ask for it; what it looks like in a browser is in tests/browser.
. tests/net/each.bash
. tests/wire/server.bash

start_server --http 127.0.0.1:0
http=$(sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
page() { curl -s "${@:2}" "http://$http$1"; }
is() { # STATUS PATH CURL-OPTION...
    local status
    status=$(curl -s -o "$WORK/answer" -w '%{http_code}' "${@:3}" "http://$http$2")
    [ "$status" = "$1" ] || { echo "$2: $status, not $1"; cat "$WORK/answer"; return 1; }
}

check "a server alone" json '.server == null and .mode == "standalone" and .write == false' page /page/state
check "... follows nobody" json '.ensemble == null and .elections == []' page /page/state
events() { timeout "$PATIENCE" curl -sN "http://$http/page/events"; }
check "an event comes at once" grep -qm1 '^data: {"server":null,' <(events)
check "the page, of an administrator on this machine" is 200 /page/state --unix-socket "$WORK/data/admin.socket"
check "a host that is not this one" is 421 /page/tree -H 'Host: rebound.example'
check "no file but its own" is 404 /page/../../etc/passwd --path-as-is
check "... and no part by halves" is 404 /page/stat
check "a limit that is none" json '.children | length == 1' page '/page/tree?limit=-1'
stop_server

read -r address port < <(/usr/bin/python3 tests/wire/places.py 1)
start_server --set admin.enableServer=false --set metricsProvider.httpHost="$address" --set metricsProvider.httpPort="$port"
http=$(sed -n 's/.*; metrics on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
check "a port for metrics serves them" is 200 /metrics
for path in / /page/state /status /ensemble /commands /commands/stat /metrics/; do
    check "... and not $path" is 404 "$path"
done
check "... and takes no commands" is 404 /ensemble/transfer -X POST
check "... and no host that is not this one" is 421 /metrics -H 'Host: rebound.example'
check "... and is the only address of HTTP" bash -c '! grep -q "HTTP on" "$1"' - "$WORK/server.out"
stop_server

each_of web
