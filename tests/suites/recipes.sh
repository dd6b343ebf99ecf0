# The recipes of the library, used by many processes, against this server and against ZooKeeper.  CYCLES=6400 for longer:
# so many hand-offs for each of the larger checks.
with_processes
wire=tests/wire
servers=()
export ADDRESS
read -r ADDRESS port < <(/usr/bin/python3 tests/wire/places.py 2)
finish() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null
    wait
}
trap finish EXIT
cycles=${CYCLES:-640}
LOST_MS=6000 # sessions of those that are killed or stopped

compile() {
    gcc -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude ${SANITIZED:+-fsanitize=address,undefined} \
        -o "$WORK/recipes" "$wire/recipes.c" "$B/libconclave.a" -lssl -lcrypto -lm -pthread
}

# Whenever it ends, it is started again.
keep_conclave() {
    local pid
    trap 'kill "$pid" 2>/dev/null; wait; exit' TERM
    while :; do
        "$CONCLAVE" serve --data "$WORK/conclave" --listen "$ADDRESS:$port" --http off --set maxClientCnxns=0 \
            --set tickTime=1000 --set minSessionTimeout=1000 --set maxSessionTimeout=40000 >>"$WORK/conclave.log" 2>&1 &
        pid=$!
        echo "$pid" >"$WORK/conclave.pid"
        wait "$pid"
    done
}

# recipes COMMAND NAME ARGUMENT...: a process of the driver, at the server that is tested now.
recipes() { bounded "$WORK/recipes" "$1" "$AT" "/$2" "${@:3}"; }

# all_succeed PID...: being late is the least of what can have happened.
all_succeed() {
    local pid status bad=0
    for pid in "$@"; do
        wait "$pid"
        status=$?
        [ $status -ne 124 ] || status=$LATE
        if [[ $status -ne 0 && ($bad -eq 0 || $bad -eq $LATE) ]]; then bad=$status; fi
    done
    return $bad
}

fresh() {
    directory=$WORK/$1.${AT##*:}
    mkdir -p "$directory"
    echo 0 >"$directory/number"
    : >"$directory/log"
}

judge() { /usr/bin/python3 "$wire/overlaps.py" "$directory/log" "${1:-1}"; }

many_processes() {
    local pids=() i
    fresh many
    for i in 1 2 3 4 5 6 7 8; do
        recipes count many "$((cycles / 8))" "$directory" exclusive 1 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" || return
    judge || return 1
    [ "$(cat "$directory/number")" -eq "$((cycles / 8 * 8))" ] || { echo "the number is $(cat "$directory/number")"; return 1; }
}

with_kazoo() {
    local pids=() i
    fresh kazoo
    for i in 1 2; do
        RECIPE=3 recipes count kazoo 60 "$directory" exclusive 1 &
        pids+=($!)
        bounded /usr/bin/python3 "$wire/kazoo_lock.py" "$AT" /kazoo 30 "$directory" &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge && [ "$(cat "$directory/number")" -eq 180 ]
}

# curator PATH CYCLES KIND: Curator's locks, in Java.
curator() {
    local jar classes=''
    for jar in js curator-client curator-framework curator-recipes guava zookeeper zookeeper-jute slf4j-api slf4j-nop netty-handler; do
        classes+=/usr/share/java/$jar.jar:
    done
    bounded java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -cp "$classes" \
        org.mozilla.javascript.tools.shell.Main -opt -1 "$wire/curator.js" "$AT" "$1" "$2" "$directory" "$3"
}
with_curator() { # mutex|latch RECIPE
    local pids=() i
    fresh "curator-$1"
    curator "/curator-$1" 60 "$1" &
    pids+=($!)
    for i in 1 2; do
        RECIPE=$2 recipes count "curator-$1" 200 "$directory" exclusive 1 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge && [ "$(cat "$directory/number")" -eq 460 ]
}
with_curators_readers() {
    local pids=() kind
    fresh curator-rw
    for kind in read write; do
        curator /curator-rw 60 $kind &
        pids+=($!)
    done
    for kind in shared exclusive; do
        RECIPE=1 recipes count curator-rw 200 "$directory" $kind 1 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge && [ "$(cat "$directory/number")" -eq 260 ]
}
readers_and_writers() {
    local pids=() i
    fresh rw
    for i in 1 2 3; do
        recipes count rw 40 "$directory" shared 1 &
        pids+=($!)
    done
    for i in 1 2; do
        recipes count rw 40 "$directory" exclusive 1 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge && [ "$(cat "$directory/number")" -eq 80 ]
}

semaphore() {
    local pids=() i
    fresh slots
    for i in 1 2 3 4 5 6; do
        recipes count slots 25 "$directory" exclusive 2 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge 2
}

# Holders are killed: the next one gets the lock when the session has ended, with a higher token.
killed_holders() {
    local pid
    fresh killed
    : >"$directory/held"
    SESSION_MS=$LOST_MS "$WORK/recipes" hold "$AT" /killed "$directory/held" &
    pid=$!
    await grep -q held "$directory/held" || return
    kill -9 "$pid"
    recipes count killed 1 "$directory" exclusive 1 || return
    # its time was before that of the next one, and so is its token
    awk '{print "x 1 2", $2, 1}' "$directory/held" >>"$directory/log"
    judge
}

refused() { grep -q 'refused\|WRITTEN' "$directory/said"; }
stopped() { [[ $(ps -o stat= -p "$1") == T* ]]; }

# A holder that was stopped for longer than its session writes nothing, although it believes that it may.
paused_holder() {
    local pid
    fresh paused
    /usr/bin/python3 - "$AT" <<'PY' || return 1
import os, sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1], timeout=40); client.start(timeout=int(os.environ["PATIENCE"])); client.ensure_path("/guarded"); client.stop()
PY
    SESSION_MS=$LOST_MS "$WORK/recipes" paused "$AT" /paused "$directory/said" /guarded &
    pid=$!
    await grep -q held "$directory/said" && await stopped "$pid" || return
    recipes count paused 1 "$directory" exclusive 1 || return # waits for the end of the session
    kill -CONT "$pid"
    await refused && grep -q refused "$directory/said" && wait "$pid"
}

elections() {
    local pids=() i pid
    fresh elect
    for i in 1 2 3 4; do
        recipes lead elect "$directory/log" "$i" 15 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" && judge || return
    SESSION_MS=$LOST_MS "$WORK/recipes" lead "$AT" /elect "$directory/forever" 0 1 forever &
    pid=$!
    await test -s "$directory/forever" || return
    recipes lead elect "$directory/log" 1 1 &
    pids=($!)
    kill -9 "$pid"
    all_succeed "${pids[@]}" && cat "$directory/forever" >>"$directory/log" && judge
}

# Fifty competitors, some of which are killed at any time: at most one says that it has it, and if none was killed, one.
once_for_all() {
    local pids=() i said
    fresh once
    : >"$directory/said.$1" # the one that has it may be killed before it says so
    for i in $(seq 50); do
        "$WORK/recipes" once "$AT" "/once/$1" "$directory/said.$1" &
        pids+=($!)
    done
    if [ "$1" = kills ]; then
        for i in 3 7 11 19 23 31 43 47; do kill -9 "${pids[$i]}" 2>/dev/null; done
    fi
    for i in "${pids[@]}"; do wait "$i"; done 2>/dev/null
    said=$(grep -c . "$directory/said.$1")
    if [ "$1" = kills ]; then [ "$said" -le 1 ]; else [ "$said" -eq 1 ]; fi || { echo "$said have it"; return 1; }
}

counters() {
    local pids=() i
    for i in 1 2 3 4; do
        recipes add counter 50 &
        pids+=($!)
    done
    all_succeed "${pids[@]}" || return
    /usr/bin/python3 - "$AT" <<'PY'
import os, sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1], timeout=40); client.start(timeout=int(os.environ["PATIENCE"]))
value = client.get("/counter")[0]
client.stop()
sys.exit(value != b"200" and f"the counter is {value}")
PY
}

work_queue() {
    local pids=() i victim
    fresh work
    recipes put work 60 || return
    SESSION_MS=$LOST_MS "$WORK/recipes" work "$AT" /work "$directory/done" 59 &
    victim=$!
    for i in 1 2 3; do
        recipes work work "$directory/done" 59 &
        pids+=($!)
    done
    await test -s "$directory/done" || return
    kill -9 "$victim"
    all_succeed "${pids[@]}" || return
    # one that the victim had done, without having said so, may be missing
    [ "$(sort "$directory/done" | uniq -d | wc -l)" -eq 0 ] && [ "$(wc -l <"$directory/done")" -ge 59 ]
}

# The server is killed and started again, while processes count.  Who lost the lock by the clock may have written, so only
# what those say who still held it is judged.
await_lines() { await eval "[ \$(wc -l <'$directory/log') -ge $1 ]"; }
restarts() {
    local pids=() i
    fresh restarts
    for i in 1 2 3 4; do
        recipes count restarts "$((cycles / 8))" "$directory" exclusive 1 &
        pids+=($!)
    done
    for i in 1 2; do
        await_lines "$((i * cycles / 8))" || return
        kill -9 "$(cat "$WORK/conclave.pid")"
    done
    all_succeed "${pids[@]}" && judge
}

# later NAME COMMAND...: a check that runs beside others, because it mostly waits for sessions to end; collect reports them.
later() {
    local at=$WORK/later.${#waiting[@]}
    waiting+=("$1")
    { "${@:2}" >"$at" 2>&1; echo $? >"$at.status"; } &
    running+=($!)
}
report() { cat "$WORK/later.$1"; return "$(cat "$WORK/later.$1.status")"; }
collect() {
    local i
    wait "${running[@]}"
    for i in "${!waiting[@]}"; do check "${waiting[$i]}" report "$i"; done
}
waiting=()
running=()

slow() { # LABEL: at the server AT
    later "$1: killed holders" killed_holders
    later "$1: a paused holder cannot write" paused_holder
    later "$1: elections" elections
    later "$1: work is done once, although a worker dies" work_queue
}

quick() {
    check "$1: processes count without atomics, tokens grow" many_processes
    check "$1: kazoo's lock and ours exclude each other" with_kazoo
    check "$1: Curator's mutex and our lock exclude each other" with_curator mutex 0
    if long || [ "$1" = conclave ]; then check "$1: Curator's readers and writers and ours" with_curators_readers; fi
    if long || [ "$1" = conclave ]; then check "$1: Curator's leader latch and our lock" with_curator latch 2; fi
    check "$1: readers and writers" readers_and_writers
    check "$1: a semaphore admits so many" semaphore
    check "$1: once, for fifty competitors" once_for_all calm
    check "$1: once, with kills" once_for_all kills
    check "$1: counters" counters
}

"$wire/reference" "$WORK/zookeeper" "$((port + 1))" >"$WORK/zookeeper.log" 2>&1 &
servers+=($!)
keep_conclave 2>/dev/null &
servers+=($!)
check_first "the driver compiles" compile
check_first "the server answers" await listens "$port"
check_first "ZooKeeper answers" await listens "$((port + 1))"
AT=$ADDRESS:$((port + 1))
slow ZooKeeper
RECIPES_SERVER=$AT later "ZooKeeper: the unit tests of the recipes" bounded "$B/tests/test_recipes"
quick ZooKeeper
AT=$ADDRESS:$port
slow conclave
quick conclave
collect
check "conclave: the server is killed and restarted" restarts
