# Members of an ensemble change while it serves; `conclave ensemble`, and `conclave up`.
. tests/net/each.bash
. tests/wire/server.bash
ensemble() { exec timeout 20 "$CONCLAVE" ensemble "$@"; }
up() { exec timeout 20 "$CONCLAVE" up "$@" </dev/null; }

check "what?" says "what is to be done" 2 ensemble
check "not a command" says "'sing' is not status, add" 2 ensemble sing
check "status of what?" says "'1' is not needed" 2 ensemble status 1
check "which server?" says "which server?" 2 ensemble remove
check "one at a time" says "one change at a time, not '3' as well" 2 ensemble remove 2 3
for what in 4 four=127.0.0.1:1 0=127.0.0.1:1 255=127.0.0.1:1 4=:1 4=127.0.0.1 4=127.0.0.1:0 4=127.0.0.1:65536 \
    4=127.0.0.1:1:voter 4=127.0.0.1:1x; do
    check "no member: $what" says "is not N=HOST:PORT" 2 ensemble add "$what"
done
for what in 1 1= 1=x 1=-1 1=256 0=1 =1; do check "no weight: $what" says "is not N=W" 2 ensemble weight "$what"; done
for what in x 0 1x -1 255; do check "no server: $what" says "is not the number of a server" 2 ensemble transfer -- "$what"; done
check "not a duration" says "is not a duration" 2 ensemble status --timeout soon
check "not an address" says "it is not an address such as" 2 ensemble status --at nowhere
check "no such host" says "nowhere.invalid:1': " 2 ensemble status --at nowhere.invalid:1
check "nobody is there" says "nobody listens there" 3 ensemble status --at 127.0.0.1:1

start_server --http 127.0.0.1:0
http=$(sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
check "a server alone" says "that server is alone" 3 ensemble status --at "$http"
check "... cannot be added to" says "that server is alone" 3 ensemble add 2=127.0.0.1:1 --at "$http"
check "another port of a server" says "is not the HTTP address of a Conclave server" 3 ensemble status --at "$AT"
posted() { [ "$(curl -s -o /dev/null -w '%{http_code}' -X POST "${@:2}" "http://$http/ensemble/remove/1")" = "$1" ]; }
check "no page that a browser shows removes a server" posted 403
check "... and who may is told why not" posted 409 -H 'Conclave: 1'
stop_server

check "too many servers" says "'10' is not a number from 1 to 9" 2 up --servers 10
check "not a port" says "'x' is not a number" 2 up --port x
check "not an option" says "'now' is not an option" 2 up now
bogus() (
    said=$(up --port 28990 --servers 2 -- --bogus 2>&1 >/dev/null)
    [ $? -eq 2 ] && [[ $said == *"no server could be started; server 1 said:"*"unrecognized option '--bogus'"* ]] || { echo "$said"; return 1; }
)
check "an option that no server knows" bogus
check "not a directory" says "/dev/null/x: Not a directory" 3 up --port 28990 --data /dev/null/x

each_of members
