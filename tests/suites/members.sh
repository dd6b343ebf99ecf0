# Members of an ensemble change while it serves; `conclave ensemble`, and `conclave up`.
. tests/net/each.bash
. tests/wire/server.bash
ensemble() { exec timeout "$LIMIT" "$CONCLAVE" ensemble "$@"; }
up() { exec timeout "$LIMIT" "$CONCLAVE" up "$@" </dev/null; }

check "a command is missing" says "a command is missing" 2 ensemble
check "not a command" says "'sing' is not status, add" 2 ensemble sing
check "status takes no argument" says "'1' is too much" 2 ensemble status 1
check "a server is missing" says "which server?" 2 ensemble remove
check "one change at a time" says "one change at a time, not '3' as well" 2 ensemble remove 2 3
for what in 4 four=127.0.0.1:1 255=127.0.0.1:1 4=:1 4=127.0.0.1 4=127.0.0.1:0 4=127.0.0.1:65536 \
    4=127.0.0.1:1:voter 4=127.0.0.1:1x; do
    check "not a member: $what" says "is not N=HOST:PORT" 2 ensemble add "$what"
done
for what in 1 1= 1=x 1=-1 1=256 =1; do check "not a weight: $what" says "is not N=W" 2 ensemble weight "$what"; done
for what in x 1x -1 255; do check "not a server: $what" says "is not the number of a server" 2 ensemble transfer -- "$what"; done
check "not a duration" says "is not a duration" 2 ensemble status --timeout soon
check "not an address" says "it is not an address such as" 2 ensemble status --at nowhere
check "no such host" says "nowhere.invalid:1': " 2 ensemble status --at nowhere.invalid:1
check "nothing listens there" says "nothing listens there" 3 ensemble status --at 127.0.0.1:1

start_server --http 127.0.0.1:0
http=$(sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
check "a server alone" says "that server is alone" 3 ensemble status --at "$http"
check "... cannot be added to" says "that server is alone" 3 ensemble add 2=127.0.0.1:1 --at "$http"
check "another port of a server" says "is not the HTTP address of a Conclave server" 3 ensemble status --at "$AT"
posted() { [ "$(curl -s -o /dev/null -w '%{http_code}' -X POST "${@:2}" "http://$http/ensemble/remove/1")" = "$1" ]; }
check "nobody removes a server over HTTP" posted 403
check "... whatever it says of itself" posted 403 -H 'Conclave: 1' -H 'Authorization: Bearer '
check "an administrator gets a reason" posted 409 --unix-socket "$WORK/data/admin.socket"
check "a server alone, by its data" says "that server is alone" 3 ensemble remove 1 --data "$WORK/data"
stop_server
check "no server has these data" says "no server runs with this data directory" 3 ensemble status --data "$WORK/data"
check "no such data" says "no server runs with this data directory" 3 ensemble status --data "$WORK/none"
check "data and address" says "needs no address and no token" 2 ensemble status --data "$WORK/data" --at "$http"
check "no token" says "No such file" 3 ensemble status --at "$http" --admin-token-file "$WORK/none"

key() { exec timeout "$LIMIT" "$CONCLAVE" key "$@"; }
check "a key needs a file" says "give the FILE" 2 key
check "one key at a time" says "one file at a time" 2 key "$WORK/key" "$WORK/another"
check "no place for a key" says "No such file" 3 key "$WORK/none/key"
check "a key is made" key "$WORK/key"
check "... which only its owner can read" test "$(stat -c %a "$WORK/key")" = 600
check "... and which is not overwritten" says "it is left as it is" 2 key "$WORK/key"

check "too many servers" says "'10' is not a number from 1 to 9" 2 up --servers 10
check "not a port" says "'x' is not a number" 2 up --port x
check "not an option" says "'now' is not an option" 2 up now
check "records that would be removed" says "--record goes with --data DIR" 2 up --record
port=$(/usr/bin/python3 tests/wire/places.py 3 anywhere)
bogus() (
    said=$(up --port "$port" --servers 2 -- --bogus 2>&1 >/dev/null)
    [ $? -eq 2 ] && [[ $said == *"no server could be started; the log of server 1:"*"unrecognized option '--bogus'"* ]] || { echo "$said"; return 1; }
)
check "an option that no server knows" bogus
check "not a directory" says "/dev/null/x: Not a directory" 3 up --port "$port" --data /dev/null/x

is_whole && check "reconfigs are answered as ZooKeeper answers them" timeout $((LIMIT * 3)) /usr/bin/python3 tests/net/reconfig_answers.py "$WORK/answers"
printf 'dataDir=%s\nclientPort=%s\nserver.255=127.0.0.1:1:2\nserver.1=127.0.0.1:3:4\nserver.2=127.0.0.1:5:6\n' "$WORK/ids" "$port" >"$WORK/ids.cfg"
check "a server with the id 255" says "server.255: a server's id is a whole number from 0 to 254" 2 bounded "$CONCLAVE" serve --config "$WORK/ids.cfg" --insecure
check "a member with the id 255" says "from 0 to 254" 2 bounded "$CONCLAVE" serve --id 1 --ensemble "255=127.0.0.1:1,1=127.0.0.1:3" --insecure --data "$WORK/ids"

each_of members access identity wedge
