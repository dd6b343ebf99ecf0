# The data of a server as files: a ZooKeeper server's imported, backups, restoring them, damage.
with_processes
wire=tests/wire
super='DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU='
c() { "$CONCLAVE" "$@"; }
tree() { bounded /usr/bin/python3 "$wire/data_tree.py" "$@"; }
files() { /usr/bin/python3 "$wire/data_files.py" "$@"; }
# Checks run in processes of their own; what they leave running ends with the suite.
trap 'kill -9 $(cat "$WORK/pids") 2>/dev/null' EXIT

serves_or_ended() {
    AT=$(sed -n 's/^conclave: serving clients on \([0-9.:]*\).*/\1/p' "$WORK/serve.out")
    [ -n "$AT" ] || ! kill -0 "$PID" 2>/dev/null
}

# serve DIR [OPTION...]: sets AT and PID.
serve() {
    local directory=$1
    shift
    AT=
    : >"$WORK/serve.out" # the output of the last server is not this one's
    "$CONCLAVE" serve --data "$directory" --listen 127.0.0.1:0 --set admin.enableServer=false --set "$super" \
        --set extendedTypesEnabled=true --set maxSessionTimeout=120000 "$@" >"$WORK/serve.out" 2>"$WORK/serve.err" </dev/null &
    PID=$!
    echo "$PID" >>"$WORK/pids"
    await serves_or_ended
    [ -n "$AT" ] && return
    echo "it does not serve:"
    cat "$WORK/serve.err"
    return 1
}
end() { kill "$PID" && wait "$PID"; }
# kill_it: when it returns, nothing is written any more.
kill_it() {
    kill -9 "$PID"
    wait "$PID" 2>/dev/null
    [ $? -eq 137 ]
}

# zookeeper DIR: a ZooKeeper server with many small files; sets AT and PID.
zookeeper() {
    local directory=$1 jars=/usr/share/java address port
    read -r address port < <(/usr/bin/python3 "$wire/places.py" 1)
    mkdir -p "$directory/data" "$directory/logs"
    printf '%s\n' "dataDir=$directory/data" "dataLogDir=$directory/logs" "clientPort=$port" \
        "clientPortAddress=$address" tickTime=2000 maxSessionTimeout=120000 maxClientCnxns=0 admin.enableServer=false forceSync=no \
        extendedTypesEnabled=true preAllocSize=64 snapCount=300 globalOutstandingLimit=1000000 "$super" \
        >"$directory/zoo.cfg"
    java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms32m -Xmx256m \
        -Dznode.container.checkIntervalMs=86400000 -cp "$jars/slf4j-nop.jar:$jars/zookeeper.jar" \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$directory/zoo.cfg" >"$WORK/zookeeper.out" 2>&1 &
    PID=$!
    echo "$PID" >>"$WORK/pids"
    AT=$address:$port
    tree await "$AT"
}

# ---- From a real server ----
fill_zookeeper() { zookeeper "$WORK/zk" && tree fill "$AT" "$WORK/original.json" "$WORK/zk/data/version-2" && kill_it; }
import() { c import --from-zookeeper "$1/data" --log-dir "$1/logs" --data "$2"; }
newest() { # the newest snapshot, by its number
    (cd "$1" && for f in snapshot.*; do printf '%d %s\n' "0x${f#*.}" "$f"; done | sort -n | tail -1 | cut -d' ' -f2)
}
# imported DIR: these files become the tree that ZooKeeper had, to the last field.
imported() {
    rm -rf "$WORK/new"
    import "$1" "$WORK/new" >"$WORK/import.out" 2>"$WORK/import.err" || { cat "$WORK/import.err"; return 1; }
    serve "$WORK/new" && tree dump "$AT" "$WORK/new.json" && tree same "$WORK/original.json" "$WORK/new.json" && end
}
# Older snapshots and longer logs lead to the same tree: the snapshots were taken while clients wrote.
older_snapshots() {
    local i file
    cp -r "$WORK/zk" "$WORK/older"
    for i in $(seq 100); do
        file=$(newest "$WORK/older/data/version-2")
        [ "$file" = snapshot.0 ] && break
        rm "$WORK/older/data/version-2/$file"
        [ $((i % 4)) -eq 0 ] && { imported "$WORK/older" || { echo "from the one before $file"; return 1; }; }
    done
    [ "$i" -ge 8 ] || { echo "only $i snapshots: no test"; return 1; }
    imported "$WORK/older"
}
sessions_go_on() { serve "$WORK/new" && tree attach "$AT" "$WORK/original.json" && end; }
report_tells() {
    imported "$WORK/zk" && grep -q '^28[0-9][0-9] nodes, 3 of them ephemeral; 3 sessions; last zxid 0x' "$WORK/import.out" &&
        grep -q "^from $(newest "$WORK/zk/data/version-2") and [1-9][0-9]* transactions after it in log" "$WORK/import.out"
}
nothing_changed() { diff -r "$WORK/zk" "$WORK/kept"; }
logs_forgotten() { c import --from-zookeeper "$WORK/zk/data" --data "$WORK/forgotten" 2>"$WORK/notes" && grep 'give --log-dir' "$WORK/notes"; }

check "a ZooKeeper server is filled and killed" fill_zookeeper
cp -r "$WORK/zk" "$WORK/kept"
check "import: node by node the same" imported "$WORK/zk"
check "import: sessions can be resumed with their passwords" sessions_go_on
check "import: from every fourth snapshot, the same" older_snapshots
check "import: the report has nodes, sessions, zxid, files" report_tells
check "import: the old files are unchanged" nothing_changed
check "import: a note, if the logs are in another directory" logs_forgotten

# ---- From files that were made for it ----
from() { rm -rf "$WORK/made" "$WORK/made-new" && files "$1" "$WORK/made" && c import --from-zookeeper "$WORK/made" --data "$WORK/made-new"; }
# holds NAME PATHS: what is imported from these files, below the root.
holds() {
    from "$1" && serve "$WORK/made-new" && tree dump "$AT" "$WORK/made.json" && end &&
        jq -r '.nodes | keys[] | select(startswith("/zookeeper") | not)' "$WORK/made.json" | sort | tr '\n' ' ' >"$WORK/paths" &&
        { [ "$(cat "$WORK/paths")" = "$2 " ] || { cat "$WORK/paths"; return 1; }; }
}
stat_is() { jq -e ".nodes[\"$1\"] | $2" "$WORK/made.json" >/dev/null || { jq -c ".nodes[\"$1\"]" "$WORK/made.json"; return 1; }; }
refused() { local text=$2; says "$text" 3 from "$1" && [ ! -e "$WORK/made-new" ]; }
noted() { from "$1" 2>"$WORK/notes" && grep "note: .*$2" "$WORK/notes"; }

check "3.4: an old snapshot and its log" holds old "/ /a /b"
check "3.4: the last data" stat_is /a '.[0] == "Mg==" and .[2].version == 1 and .[2].cversion == 2 and .[2].numChildren == 0'
check "3.4: the nodes of an ended session are deleted, and the parent has its pzxid" stat_is /a '.[2].pzxid == 5'
check "3.4: creates without a count" stat_is / '.[2].pzxid == 4 and .[2].cversion == 1'
check "3.4: nodes of newer releases are created" stat_is /zookeeper/config '.[1] == [[1, "world", "anyone"]] and .[2].aversion == -1'
check "a fuzzy snapshot, newer than its name" holds ahead "/ /a /a/new /late"
check "... a node that was created again is the second one" stat_is /a '.[2].czxid == 8 and .[2].cversion == 1 and .[2].numChildren == 1'
check "... an ACL that only the log has" stat_is /late '.[1] == [[1, "world", "anyone"]]'
check "... the root's counts" stat_is / '.[2].pzxid == 15 and .[2].cversion == 3'
check "a fuzzy snapshot, newer than the log" holds short "/ /p /p/z"
check "... keeps what only it has" stat_is /p '.[2].pzxid == 9 and .[2].cversion == 5'
check "... with a note" noted short 'up to zxid 0x9, but the logs end with 0x5'
check "a torn end is skipped" holds torn "/ /a /b"
check "... with a note: the file, the offset" noted torn 'log.3: the last record, at offset 103,'
check "a torn end of a log that is not the last" holds torn_before "/ /a /b /c"
check "a damaged record" refused damaged_log "log.3: offset 16: it is damaged, although more records follow"
check "a log is missing" refused missing_log "log.3: offset 16: transactions before it are missing"
check "a damaged snapshot is skipped" holds damaged_snapshot "/ /a /b /c"
check "... with a note" noted damaged_snapshot 'snapshot.3: offset .*; trying the snapshot before it'
check "no snapshot is complete" refused only_damaged "no snapshot is whole"
check "compressed with gzip" holds zipped "/ /a /b /c"
check "compressed with snappy" refused snappy "compressed with snappy"
check "a transaction of a newer release" refused newer "a newer release"
check "an empty log at the end" holds empty_log "/ /a /b /c"
check "a snapshot alone" noted no_logs "give --log-dir"
check "no snapshot" refused no_snapshot "there is no snapshot"

check "import: no directory" says "cannot be listed" 3 c import --from-zookeeper "$WORK/nowhere" --data "$WORK/x"
check "import: into data" says "is not empty" 3 c import --from-zookeeper "$WORK/zk/data" --log-dir "$WORK/zk/logs" --data "$WORK/zk"
check "import: without a source" says "from-zookeeper: which" 2 c import --data "$WORK/x"
check "import: without a target" says "data: which" 2 c import --from-zookeeper "$WORK/zk"

# ---- Backups ----
further() { ! cmp -s "$WORK/written" "$WORK/written.$1"; }
a_snapshot_of() { ls "$1" | grep -q '^snapshot'; }
# Several, while a client writes and the server takes snapshots and removes old files.
backups_agree() {
    local i writer
    serve "$WORK/busy" --set snapCount=300 --set preAllocSize=128 --set autopurge.snapRetainCount=1 || return 1
    bounded /usr/bin/python3 "$wire/data_tree.py" pairs "$AT" "$WORK/written" &
    writer=$!
    echo "$writer" >>"$WORK/pids"
    await test -f "$WORK/written" || return
    cp "$WORK/written" "$WORK/written.0"
    for i in $(seq 8); do
        await further $((i - 1)) || return
        [ "$i" -lt 4 ] || await a_snapshot_of "$WORK/busy" || return
        cp "$WORK/written" "$WORK/written.$i"
        c backup "$WORK/busy.$i" --data "$WORK/busy" || return 1
    done
    kill "$writer"
    end || return 1
    for i in $(seq 8); do
        c restore "$WORK/busy.$i" --data "$WORK/busy-new.$i" && serve "$WORK/busy-new.$i" &&
            tree agree "$AT" "$WORK/written.$i" && end || { echo "backup $i"; return 1; }
    done
}
there_and_back() {
    imported "$WORK/zk" && c backup "$WORK/all.snapshot" --data "$WORK/new" && c restore "$WORK/all.snapshot" --data "$WORK/back" &&
        serve "$WORK/back" && tree dump "$AT" "$WORK/back.json" && tree same "$WORK/original.json" "$WORK/back.json" && end
}
# A few entries with much in them: a start repeats no more of them than is set.
much_in_few() {
    head -c 60000 /dev/zero | tr '\0' x >"$WORK/much"
    serve "$WORK/few" --set snapSizeLimitInKb=256 --set preAllocSize=128 || return 1
    "$CONCLAVE" create /much --server "$AT" --file "$WORK/much" || return 1
    for _ in $(seq 8); do "$CONCLAVE" set /much --server "$AT" --file "$WORK/much" || return 1; done
    await a_snapshot_of "$WORK/few" || return
    end
}
check "backups under load are of one moment, and complete" backups_agree
check "much log in few entries is followed by a snapshot" much_in_few
check "restored: node by node the same" there_and_back
check "restore: into data" says "is not empty" 3 c restore "$WORK/all.snapshot" --data "$WORK/back"
check "restore: no file" says "No such file" 3 c restore "$WORK/none" --data "$WORK/x"
check "restore: no backup" says "its header is damaged" 3 c restore "$CONCLAVE" --data "$WORK/x"
cut_short() { head -c 5000 "$WORK/all.snapshot" >"$WORK/short" && says "short: it ends too early" 3 c restore "$WORK/short" --data "$WORK/x"; }
check "restore: a backup that was cut short" cut_short
check "restore: no target" says "either --data" 2 c restore "$WORK/all.snapshot"
check "restore: two targets" says "either --data" 2 c restore "$WORK/all.snapshot" --data "$WORK/x" --server 127.0.0.1:1
check "restore: a server is named" says "either --data" 2 env CONCLAVE_SERVER=127.0.0.1:1 "$CONCLAVE" restore "$WORK/all.snapshot"
check "restore: nothing listens there" says "connection refused" 69 c restore "$WORK/all.snapshot" --server 127.0.0.1:1
check "backup: no file" says "give the FILE" 2 c backup
check "backup: no data" says "there is no data in it" 3 c backup "$WORK/x" --data "$WORK/zk"
check "backup: no directory" says "No such file" 3 c backup "$WORK/x" --data "$WORK/nowhere"

# ---- Restoring a running server: as one of its clients ----
restore_to() { CONCLAVE_AUTH=super:test c restore "$WORK/all.snapshot" --server "$AT" "$@"; }
is_restored() { tree dump "$AT" "$WORK/to.json" && tree alike "$WORK/original.json" "$WORK/to.json"; }
restores() { restore_to >"$WORK/restore.out" && grep "$1" "$WORK/restore.out"; }
dry_run() {
    restore_to --dry-run >"$WORK/restore.out" && grep '^would be: 28[0-9][0-9] created, 1 written' "$WORK/restore.out" &&
        tree dump "$AT" "$WORK/to.json" && [ "$(jq '.nodes | length' "$WORK/to.json")" -eq 4 ]
}
empty_server() { restores '^28[0-9][0-9] created, 1 written, 0 ACLs set, 0 deleted, 0 kept' && is_restored; }
nothing_to_do() { restores '^0 created, 0 written, 0 ACLs set, 0 deleted, 0 kept'; }
stranger() {
    env -u CONCLAVE_AUTH "$CONCLAVE" restore "$WORK/all.snapshot" --server "$AT" >"$WORK/restore.out" 2>"$WORK/restore.err"
    [ $? -eq 77 ] && grep -- 'ACL does not allow this; say who is asking with --auth-file' "$WORK/restore.err"
}
other_tree() { # what belongs to sessions stays, and what is above it
    tree spoil "$AT" && restores '^2 created, 1 written, 1 ACLs set, 3 deleted, 4 kept' &&
        grep -x 'keep /text/mine' "$WORK/restore.out" && grep -x 'keep /surplus/held' "$WORK/restore.out" &&
        tree dump "$AT" "$WORK/to.json" && tree alike "$WORK/original.json" "$WORK/to.json" /surplus &&
        jq -e '.nodes["/surplus/held/mine"]' "$WORK/to.json"
}
# Beside the tree itself, below a node that there is not yet; each change is a line of JSON.
beside() { CONCLAVE_AUTH=super:test c restore "$WORK/all.snapshot" --server "$AT/beside" --json; }
into_a_chroot() {
    beside >"$WORK/restore.out" && jq -es 'map(select(.change == "create")) | length > 2800' "$WORK/restore.out" &&
        jq -es 'last.created == (map(select(.change == "create")) | length)' "$WORK/restore.out" &&
        json 'del(.dry_run) | add == 0' beside && restores '^0 created, 0 written, 0 ACLs set, 28[0-9][0-9] deleted, 0 kept'
}
zookeeper_restored() { zookeeper "$WORK/zk2" && restores '^28[0-9][0-9] created' && is_restored && nothing_to_do && kill_it; }

serve "$WORK/to"
check "restore: a dry run" dry_run
check "restore: an empty server" empty_server
check "restore: a second time changes nothing" nothing_to_do
check "restore: not allowed" stranger
check "restore: below a node" into_a_chroot
check "restore: a tree that differs in all ways" other_tree
end
check "restore: the server served to the end" test $? -eq 0
check "restore: a ZooKeeper server" zookeeper_restored

# ---- Damage ----
recover() { c recover --data "$WORK/hurt" "$@" >"$WORK/recover.out" 2>"$WORK/recover.err"; }
told() { grep -q "$1" "$WORK/recover.out" "$WORK/recover.err" || { cat "$WORK/recover.out" "$WORK/recover.err"; return 1; }; }
# hurt FROM: a copy that may be damaged.
hurt() { rm -rf "$WORK/hurt" && cp -r "$WORK/$1" "$WORK/hurt"; }
file() { ls "$WORK/hurt" | grep "^$1" | sed -n "$2p"; }
overwrite() { printf 'damage' | dd of="$WORK/hurt/$1" bs=1 seek="$2" conv=notrunc status=none; }
number() { serve "$WORK/hurt" && tree number "$AT" "$@" && end; }
fails_to_serve() { says "${1:-conclave recover}" 3 "$CONCLAVE" serve --data "$WORK/hurt" --listen 127.0.0.1:0 --set admin.enableServer=false; }
aside() { [ "$(ls "$WORK/hurt" | grep -c "^damaged.$1")" -eq "$2" ] || { ls "$WORK/hurt"; return 1; }; }
# looked STATUS TEXT...: without --cut nothing changes, and it says so.
looked() {
    local status=$1 text
    shift
    cp -r "$WORK/hurt" "$WORK/before"
    exits "$status" recover || return 1
    diff -r "$WORK/before" "$WORK/hurt" || return 1
    rm -r "$WORK/before"
    for text in "$@"; do told "$text" || return 1; done
}
cut() { exits 0 recover --cut && told '^what is left: entries up to' && exits 0 recover && told '^all is good'; }

# Logs of several segments, without a snapshot and with two or three.
make_logs() { serve "$WORK/logs" --set preAllocSize=16 && tree count "$AT" 600 && end && [ "$(ls "$WORK/logs" | grep -c ^log)" -ge 4 ]; }
make_snapshots() {
    serve "$WORK/both" --set snapCount=100 --set preAllocSize=16 --set autopurge.snapRetainCount=2 &&
        tree count "$AT" 1000 "$WORK/both" >"$WORK/both.last" && end || { ls "$WORK/both"; return 1; }
}
last() { cat "$WORK/both.last"; }
sound() { hurt logs && looked 0 '^all is good' && hurt both && looked 0 '^all is good'; }
running() { hurt logs && serve "$WORK/hurt" && says "a server is using it" 3 c recover --data "$WORK/hurt" --cut && end; }
torn_end() {
    hurt logs && /usr/bin/python3 - "$WORK/hurt/$(file log '$')" <<'TEAR' && looked 0 'was never completed' '^all is good' && number 600 600
import sys
with open(sys.argv[1], "r+b") as file:
    end = len(file.read().rstrip(b"\0"))
    file.seek((end + 7) // 8 * 8)
    file.write(b"torn")
TEAR
}
in_the_middle() {
    hurt logs && overwrite "$(file log 2)" 3000 && fails_to_serve &&
        looked 1 "^$(file log 2) .*; damaged at offset 2[0-9]* (entry [0-9]*)" '^lost: entries [0-9]* to 60[0-9]' &&
        cut && aside log "$(($(ls "$WORK/logs" | grep -c ^log) - 2))" && number 80 200
}
a_header() {
    hurt logs && overwrite "$(file log 3)" 0 && fails_to_serve && looked 1 'header is damaged' '^lost: entries' && cut &&
        aside log "$(($(ls "$WORK/logs" | grep -c ^log) - 2))" && number 120 300
}
a_gap() {
    hurt logs && rm "$WORK/hurt/$(file log 2)" && exits 3 c serve --data "$WORK/hurt" --listen 127.0.0.1:0 --set admin.enableServer=false &&
        looked 1 '^lost: entries' && cut && aside log "$(($(ls "$WORK/logs" | grep -c ^log) - 2))" && number 50 150
}
a_snapshot() { hurt both && overwrite "$(file snapshot '$')" 60 && looked 1 '^snapshot.* damaged: ' '^lost: nothing' && cut && aside snapshot 1 && number "$(last)" "$(last)"; }
older_log() { hurt both && overwrite "$(file log 1)" 3000 && looked 1 'older than the newest good snapshot' '^lost: nothing' && cut && aside log 1 && number "$(last)" "$(last)"; }
all_gone() {
    hurt both && rm "$WORK"/hurt/log.* && fails_to_serve && looked 1 'is missing, and was the end of the log' '^lost: ' &&
        cut && number 1 "$(last)"
}
# put_log FROM: that of another server, or none.
put_log() {
    rm "$WORK"/hurt/{log.*,mark,vote} && { [ $# -eq 0 ] || cp "$WORK/$1"/{log.*,mark,vote} "$WORK/hurt"; }
}
not_mounted() {
    hurt both && put_log && fails_to_serve "is its disk mounted" && looked 1 'there is no log' '^lost: nothing that is known of' &&
        cut && number 1 "$(last)"
}
mixed() { fails_to_serve "of different servers" && exits 3 recover --cut && told 'of different servers'; }
other_log() { hurt both && put_log logs && mixed; }
other_snapshot() { hurt logs && cp "$WORK/both/$(ls "$WORK/both" | grep ^snapshot | tail -1)" "$WORK/hurt" && mixed; }
hopeless() {
    local snapshot
    hurt both || return 1
    for snapshot in $(file snapshot 1,9); do overwrite "$snapshot" 60; done
    exits 1 recover && exits 3 recover --cut && told 'nothing would be left' && aside snapshot 0
}

check "files of a server: a log" make_logs
check "files of a server: snapshots and a log" make_snapshots
check "recover: no damage" sound
check "recover: not while a server runs" running
check "recover: a torn end is no damage" torn_end
check "recover: damage in the middle of the log" in_the_middle
check "recover: a damaged header" a_header
check "recover: a missing segment" a_gap
check "recover: the whole log is missing" all_gone
check "recover: there is no log beside snapshots" not_mounted
check "recover: the log of another server alone" other_log
check "recover: a snapshot of another server alone" other_snapshot
check "recover: a damaged snapshot" a_snapshot
check "recover: damage in entries that a snapshot has" older_log
check "recover: nothing can be saved" hopeless
check "recover: no data" says "there is no data in it" 3 c recover --data "$WORK/zk"
alone() { hurt logs && exits 3 recover --new-ensemble --accept-loss && told 'the data of a server alone'; }
check "recover: a server alone is no ensemble" alone
check "recover: --new-ensemble does not cut" says "comes before" 2 c recover --new-ensemble --cut
check "recover: --accept-loss goes with --new-ensemble" says "go with --new-ensemble" 2 c recover --accept-loss
check "recover: no directory" says "No such file" 3 c recover --data "$WORK/nowhere"
