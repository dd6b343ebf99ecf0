# Sourced by suites that need a running server.  It ends with the suite, whatever happens.

# start_server [OPTION...]: sets AT to where it serves; exits, as a failed suite, if it does not.
start_server() {
    "$CONCLAVE" serve --data "$WORK/data" --listen 127.0.0.1:0 "$@" \
        >"$WORK/server.out" 2>"$WORK/server.err" </dev/null &
    server_pid=$!
    trap 'kill "$server_pid" 2>/dev/null; wait "$server_pid"' EXIT
    local i
    for i in $(seq 200); do
        AT=$(sed -n 's/^conclave: serving clients on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
        [ -n "$AT" ] && return
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED the server starts"
    tail -5 "$WORK/server.err"
    exit 1
}

# stop_server: asks it to end, and checks that it was still there and ends well.
stop_server() {
    local status
    kill "$server_pid"
    wait "$server_pid"
    status=$?
    trap - EXIT
    check "the server served to the end" ended_well "$status"
}

ended_well() { [ "$1" -eq 0 ] || { echo "it ended with status $1"; tail -5 "$WORK/server.err"; return 1; }; }
