# Clients that send nonsense, too much, too slowly, or are too many, beside one that must not notice.
. tests/wire/server.bash
ulimit -n "$(ulimit -Hn)" # thousands of connections, at both ends
start_server --set maxClientCnxns=0
attacks=$(/usr/bin/python3 tests/wire/hostile.py --list)
check "there are attacks" test -n "$attacks"
for attack in $attacks; do
    check "hostile: $attack" timeout 100 /usr/bin/python3 tests/wire/hostile.py "$server_pid" "$AT" "$attack"
done
stop_server
