# The fence in front of a real Redis and a real HTTP server; the locks are real, too.
. tests/wire/server.bash
start_server --set tickTime=250 --set maxSessionTimeout=40000
for test in $(/usr/bin/python3 tests/wire/fence.py --list); do
    check_alone "fence: $test" bounded /usr/bin/python3 tests/wire/fence.py "$AT" "$test"
done

fence() { bounded "$CONCLAVE" fence "$@"; }
given=(--listen 127.0.0.1:0 --to redis://127.0.0.1 --lock job --offline)
check "what is needed is asked for" says "give --listen, --to and --lock" 2 fence --listen 127.0.0.1:0
check "a resource of another kind" says "neither redis" 2 fence "${given[@]}" --to mysql://a
check "PostgreSQL has its own way" says "needs no proxy" 2 fence "${given[@]}" --to postgres://a
check "a resource with a path" says "is not http" 2 fence "${given[@]}" --to http://a/b
check "an address without a port" says "is not HOST:PORT" 2 fence "${given[@]}" --listen localhost
check "a lock that can be none" says "no name of a lock" 2 fence "${given[@]}" --lock a//b
check "--strict and --offline exclude each other" says "never does" 2 fence "${given[@]}" --strict
printf 'conclave fence 1\n7 job\ncrc32c 00000000\n' >"$WORK/damaged"
check "a damaged memory is not overlooked" says "damaged" 3 fence "${given[@]}" --state "$WORK/damaged"
check "a directory that is not there" says "directory cannot be opened" 3 fence "${given[@]}" --state "$WORK/no/state"
stop_server

# ---- PostgreSQL, if it is installed ----

as_postgres() { if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi; }
sql() { # TOKEN SQL...: as the owner of the tables, or as the role `app` if there is a token
    local options=() token=$1 statement
    shift
    for statement in "$@"; do options+=(-c "$statement"); done
    as_postgres env PGOPTIONS="${token:+-c conclave.token=$token}" \
        psql -qAt -v ON_ERROR_STOP=1 -h "$PG" -d postgres ${token:+-U app} "${options[@]}"
}
start_postgres() {
    as_postgres "$bin/initdb" -D "$PG/data" -A trust --no-sync >"$WORK/postgres.log" 2>&1 &&
        as_postgres "$bin/pg_ctl" -D "$PG/data" -o "-F -k $PG -c listen_addresses=''" -w -t "$PATIENCE" -l "$PG/log" start >>"$WORK/postgres.log" 2>&1 &&
        as_postgres psql -q -h "$PG" -d postgres <contrib/postgresql/fence.sql &&
        sql "" "CREATE TABLE orders (by bigint)" "SELECT fence_table('orders', 'job')" \
            "CREATE ROLE app LOGIN" "GRANT ALL ON orders TO app"
}
refuses() { # TEXT TOKEN SQL...
    local text=$1 said
    shift
    ! said=$(sql "$@" 2>&1) && [[ $said == *"$text"* ]] || { echo "$said"; return 1; }
}
waits_for_the_row() {
    [ "$(sql "" "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")" -gt 0 ]
}
# A transaction under an older token is under way: one under a newer token waits for its end.
newer_waits() {
    local older newer
    mkfifo "$WORK/older"
    as_postgres env PGOPTIONS="-c conclave.token=8" psql -qAt -h "$PG" -d postgres -U app <"$WORK/older" >/dev/null &
    older=$!
    exec 7>"$WORK/older"
    echo "BEGIN; INSERT INTO orders VALUES (8);" >&7
    await has_row_lock || return
    sql 9 "INSERT INTO orders VALUES (9)" &
    newer=$!
    await waits_for_the_row || return
    echo "INSERT INTO orders VALUES (8); COMMIT;" >&7
    exec 7>&-
    wait "$older" && wait "$newer" &&
        [ "$(sql "" "SELECT string_agg(by::text, ' ' ORDER BY ctid) FROM orders WHERE by > 7")" = "8 8 9" ]
}
has_row_lock() {
    [ "$(sql "" "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'")" -eq 1 ]
}

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
if [ -x "$bin/initdb" ]; then
    PG=$(mktemp -d) && chmod 700 "$PG"
    [ "$(id -u)" -ne 0 ] || chown postgres "$PG"
    trap 'as_postgres "$bin/pg_ctl" -D "$PG/data" -m immediate stop >/dev/null 2>&1; rm -rf "$PG"' EXIT
    check "PostgreSQL starts, and has the functions" start_postgres
    check "PostgreSQL: a write without a token" refuses "show its token" "" "INSERT INTO orders VALUES (0)"
    check "PostgreSQL: the first token" sql 5 "INSERT INTO orders VALUES (5)"
    check "PostgreSQL: a newer token" sql 7 "INSERT INTO orders VALUES (7)"
    check "PostgreSQL: an older token" refuses "has lost the lock" 5 "DELETE FROM orders"
    check "PostgreSQL: an older token, and TRUNCATE" refuses "has lost the lock" 6 "TRUNCATE orders"
    check "PostgreSQL: tokens cannot be lowered" refuses "permission denied" 7 "UPDATE fence_token SET token = 1"
    check "PostgreSQL: a newer token waits for an older one's transaction" newer_waits
else
    skip "PostgreSQL is not installed"
fi
