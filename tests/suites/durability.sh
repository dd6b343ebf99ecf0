# What was acknowledged survives kill -9, a torn log and a full disk; damage is reported, not ignored.
# KILLS=200 tests/run durability is the soak.
. tests/net/each.bash
kill9() { timeout $((LIMIT + 10 * ${KILLS:-10})) "$@"; }

tests=$(/usr/bin/python3 tests/wire/kill9.py --list)
check "there are tests" test -n "$tests"
for name in $(part $tests); do
    program=(/usr/bin/python3 tests/wire/kill9.py "$name")
    if [ "$name" = full_disk ]; then # it mounts a small disk, where nobody else sees it
        if ! unshare -m true 2>/dev/null; then
            echo "$name is left out: only root can mount a small disk"
            continue
        fi
        program=(unshare -m "${program[@]}")
    fi
    check_alone "durability: $name" kill9 "${program[@]}"
done

# kill -9 leaves what the kernel has; only the order of system calls shows that the disk was waited for.
is_traced() { ! grep -q '^TracerPid:[[:space:]]0$' "/proc/$1/task/"*/status; } # all of its threads
traced() (
    mkdir -p "$WORK/order"
    WORK=$WORK/order
    . tests/wire/server.bash
    start_server --http off "$@"
    strace -f -q -o "$WORK/trace" -e trace=accept4,pwritev,fdatasync,write -p "$server_pid" &
    tracer=$!
    await is_traced "$server_pid"
    bounded /usr/bin/python3 tests/wire/kazoo_basic.py "$AT" create_plain
    status=$?
    kill -INT "$tracer"
    wait "$tracer"
    exit "$status"
)

# Between a write to the log and its fdatasync nothing is sent to clients, and there were such writes.
disk_first() {
    awk '
        /accept4\(/ && $NF >= 0 { socket[$NF] = 1 }
        /pwritev\(/ { unsafe = 1; written++ }
        /fdatasync(\(| resumed)/ && / = 0$/ { unsafe = 0; synced++ }
        /write\(/ { fd = $0; sub(/.*write\(/, "", fd); sub(/,.*/, "", fd)
                    if (socket[fd] && unsafe) { print "answered too early: " $0; bad = 1 }
                    if (socket[fd]) told++ }
        END { print written " writes, " synced " syncs, " told " answers"
              exit bad || written < 3 || synced < 3 || told < 3 }' "$WORK/order/trace"
}

disk_comes_first() { rm -rf "$WORK/order"; traced "$@" && disk_first; }
check "the log is synced before clients are answered" disk_comes_first
check "... by a thread, too" disk_comes_first --set fsync.waitmicros=0
without_sync() { rm -rf "$WORK/order"; traced --set forceSync=no && ! disk_first; }
check "... and that check can fail" without_sync
