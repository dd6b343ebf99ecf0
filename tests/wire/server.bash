# Sourced by suites that need a running server.  It ends with the suite, whatever happens.
with_processes

serves_or_ended() {
    AT=$(sed -n 's/^conclave: serving clients on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
    [ -n "$AT" ] || ! kill -0 "$server_pid" 2>/dev/null
}

# start_server [OPTION...]: sets AT to where it serves; exits, as a failed suite, if it does not.
start_server() {
    : >"$WORK/server.out" # the output of the last server is not this one's
    "$CONCLAVE" serve --data "$WORK/data" --listen 127.0.0.1:0 "$@" \
        >"$WORK/server.out" 2>"$WORK/server.err" </dev/null &
    server_pid=$!
    trap 'kill "$server_pid" 2>/dev/null; wait "$server_pid"' EXIT
    await serves_or_ended >/dev/null
    [ -n "$AT" ] && return
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
