# Clients that send nonsense, too much, too slowly, or are too many, beside one that must not notice them.
. tests/wire/server.bash
ulimit -n "$(ulimit -Hn)" # thousands of connections, at both ends
start_server --set maxClientCnxns=0 --set maxSessionTimeout=600000
attacks=$(/usr/bin/python3 tests/wire/hostile.py --list)
check "there are attacks" test -n "$attacks"
for attack in $attacks; do
    check_alone "hostile: $attack" bounded /usr/bin/python3 tests/wire/hostile.py "$server_pid" "$AT" "$attack"
done
stop_server

if [ -n "${SANITIZED:-}" ]; then
    echo "ok the limit of memory is tried in the plain build only: what a sanitizer needs would count"
else
    rm -r "$WORK/data"
    # Ticks never come: what is freed is noticed all the same.
    start_server --set memory.maxMiB=64 --set maxClientCnxns=0 --set tickTime=10000000 --set minSessionTimeout=4000 --set maxSessionTimeout=600000 \
        --http 127.0.0.1:0 --set '4lw.commands.whitelist=*'
    http=$(sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
    check "the server refuses what does not fit into its memory" bounded \
        /usr/bin/python3 tests/wire/memory.py "$server_pid" "$AT" "$http" 64
    stop_server
fi
