# The rules that keep the tree in order, checked on the tree itself.

# What the files of each folder include directly beside their own: no other, and nothing that no file needs.
include_table() {
    cat <<'END'
base:
language:
process: base language
algorithms/mutex: process algorithms/election
algorithms/election: base process raft
algorithms/detector: process
algorithms: base process algorithms/detector
raft: base
wire/zk: base
wire/net: base
service/tree: base wire/zk service/settings
service/log: base raft
service/settings: base
service/store: base raft service/tree service/log service/settings
service/steps: base raft
service/ensemble: base raft wire/zk wire/net service/tree service/log service/settings service/store service/steps
service/server: base wire/net service/tree service/settings service/ensemble
service/admin: base service/server recipe
recipe: base
client: base wire/zk
client/recipe: base recipe client
fence: base recipe wire/net
peer: base process algorithms wire/net
lab/judge: base language process
lab/sim: base language process algorithms lab/judge
lab/check: base process lab/judge
lab/experiments: base language algorithms lab/sim lab/check
lab/raft: base raft
lab/peers: language process peer lab/judge lab/sim
lab/servers: base process raft lab/sim service/steps
cli: base language process algorithms lab/judge lab/sim lab/check lab/experiments lab/peers lab/servers service/tree service/store service/admin fence recipe peer
END
}

# FOLDER INCLUDED, for each include of another folder in the sources.
includes() {
    grep -rHoE '^#include "[a-z_0-9/]+/' src --include='*.[ch]' |
        sed -E 's|^src/(.*)/[^/]*:#include "(.*)/$|\1 \2|' | awk '$1 != $2' | sort -u
}

include_graph() {
    local allowed
    allowed=$(include_table | awk -F': *' '{n = split($2, to, " "); for (i = 1; i <= n; i++) print $1, to[i]}' | sort -u)
    diff <(echo "$allowed") <(includes) | awk '
        $1 == "<" {print "no file of " $2 "/ includes " $3 "/, which the table allows"; bad = 1}
        $1 == ">" {print "a file of " $2 "/ includes " $3 "/"; bad = 1}
        END {exit bad}'
}

# The table as a Mermaid flowchart.  An arrow that follows from others is left out.
include_picture() {
    echo '```mermaid'
    include_table | awk -F': *' '
        function id(room) {gsub("/", "_", room); return room}
        function reaches(from, to,    i, n, next_) {
            if (from == to) return 1
            n = split(table[from], next_, " ")
            for (i = 1; i <= n; i++) if (reaches(next_[i], to)) return 1
            return 0
        }
        {room[++rooms] = $1; table[$1] = $2; split($1, part, "/"); parts[part[1]]++}
        END {
            print "flowchart TD"
            for (i = 1; i <= rooms; i++) {
                split(room[i], part, "/")
                if (parts[part[1]] == 1) print "    " room[i]
                else if (!(part[1] in drawn)) {
                    drawn[part[1]] = 1
                    print "    subgraph " part[1] "_room [" part[1] "]"
                    for (j = i; j <= rooms; j++)
                        if (room[j] ~ "^" part[1] "(/|$)")
                            print "        " id(room[j]) "[" (room[j] == part[1] ? "catalogue" : substr(room[j], length(part[1]) + 2)) "]"
                    print "    end"
                }
            }
            for (i = 1; i <= rooms; i++) {
                n = split(table[room[i]], to, " ")
                for (j = 1; j <= n; j++) {
                    implied = 0
                    for (k = 1; k <= n; k++) if (k != j && reaches(to[k], to[j])) implied = 1
                    if (!implied) print "    " id(room[i]) " --> " id(to[j])
                }
            }
        }'
    echo '```'
}

# REGENERATE=1 writes the picture into the page.
include_picture_is_current() {
    local page=docs/ARCHITECTURE.md begin='<!-- include graph: begin -->' end='<!-- include graph: end -->'
    if [ -n "${REGENERATE:-}" ]; then
        include_picture >"$WORK/picture"
        sed -i -e "/^$begin$/r $WORK/picture" -e "/^$begin$/,/^$end$/{/^$begin$/b;/^$end$/b;d}" "$page"
    fi
    diff <(sed -n "/^$begin$/,/^$end$/p" "$page" | sed '1d;$d') <(include_picture)
}

# An algorithm does no I/O, allocates nothing, reads no clock: its object file could not.  Nor could
# those of the consensus core, which use each other, and of the recipes' decisions.
algorithm_imports() {
    local bad=0 object symbol
    for object in "$B"/obj/algorithms/{mutex,election,detector}/*.o \
        "$B"/obj/raft/*.o "$B"/obj/recipe/{contend,lock_steps,election}.o; do
        [ -f "$object" ] || continue
        for symbol in $(nm -u "$object" | awk '{print $2}'); do
            case $object:$symbol in
            *:memcpy | *:memset | *:memmove | *:memcmp | *:cv_broken) ;;
            */central_elected.o:cv_bully) ;; # the election that it holds
            */raft/*:raft_* | */election/raft.o:raft_*) ;;
            */recipe/*:contend_* | */recipe/*:str* | */recipe/*:qsort) ;;
            *) echo "$object imports $symbol"; bad=1 ;;
            esac
        done
    done
    return $bad
}

# ... and the check itself sees what is forbidden.
algorithm_imports_catches() {
    mkdir -p "$WORK/obj/algorithms/mutex"
    echo 'int time(long *); int f(void) { return time(0); }' | gcc -x c -c -o "$WORK/obj/algorithms/mutex/x.o" -
    ! B=$WORK algorithm_imports >/dev/null
}

# Two exceptions: how events are logged and the language of the laboratory.  Both are set once at the start, and every folder
# that logs or speaks would have to pass them on.
no_mutable_globals() {
    local found
    found=$(find "$B/obj" -name '*.o' -exec objdump -t {} + | awk '/file format/ {file = $1}
        ($3 == "O" && $4 ~ /^\.(data|bss)$/ || $2 == "O" && $3 ~ /^\.(data|bss)$/) &&
        !(file ~ /\/obj\/process\/contract_ends\.o:$/ && $NF == "handlers") &&
        !(file ~ /\/obj\/base\/logger\.o:$/ && $NF == "logger_configuration") &&
        !(file ~ /\/obj\/language\/language\.o:$/ && $NF == "language_in_use") {print file, $NF}')
    [ -z "$found" ] || { echo "$found"; return 1; }
}

format_is_kept() { git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror; }

files_are_small() {
    local big
    big=$(git ls-files 'src/*.c' 'src/*.h' | xargs wc -l | awk '$2 != "total" && $1 > 600')
    [ -z "$big" ] || { echo "$big"; return 1; }
}

# named_files DOCUMENT: what the table of files in it names, one pattern below src/ a line.  A row has a
# folder (none: that of the row above) and files; a name without an ending stands for .c and .h.
named_files() {
    awk -F '|' '
        /^## / { inside = /^## The files/ }
        !inside || !/^\|/ || /^\| (folder|---)/ { next }
        {
            if (match($2, /`[^`]+`/)) folder = substr($2, RSTART + 1, RLENGTH - 2)
            for (rest = $3; match(rest, /`[^`]+`/); rest = substr(rest, RSTART + RLENGTH)) {
                name = substr(rest, RSTART + 1, RLENGTH - 2)
                print folder "/" name (name ~ /\.[ch]$/ ? "" : ".[ch]")
            }
        }' "$1"
}

# every_file_is_named DOCUMENT SOURCES: the table and the tree name the same files.
every_file_is_named() {
    local bad=0 pattern file
    named_files "$1" >"$WORK/named"
    [ -s "$WORK/named" ] || { echo "$1 has no table of files"; return 1; }
    : >"$WORK/matched"
    while read -r pattern; do
        (cd "$2" && compgen -G "$pattern") >>"$WORK/matched" ||
            { echo "$1 names $pattern, which is not there"; bad=1; }
    done <"$WORK/named"
    while read -r file; do
        echo "$1 does not name $file"
        bad=1
    done < <(cd "$2" && find . -name '*.[ch]' | sed 's|^\./||' | grep -vxF -f "$WORK/matched")
    return $bad
}

# ... and the check itself sees both kinds of difference.
every_file_is_named_catches() {
    mkdir -p "$WORK/tree/room"
    touch "$WORK/tree/room/"{one.c,one.h,two.c}
    printf '%s\n' '## The files' '| `room` | `one` | x |' '| | `two.c` | x |' >"$WORK/good.md"
    printf '%s\n' '## The files' '| `room` | `one` | x |' >"$WORK/short.md"
    { cat "$WORK/good.md"; echo '| | `three.c` | x |'; } >"$WORK/long.md"
    every_file_is_named "$WORK/good.md" "$WORK/tree" &&
        ! every_file_is_named "$WORK/short.md" "$WORK/tree" &&
        ! every_file_is_named "$WORK/long.md" "$WORK/tree"
}

# Sources that the documents mention by their path, below src/ or from the root, are there.
mentioned_files_exist() {
    local bad=0 path
    for path in $(grep -ohE '`[a-z_]+(/[a-z_0-9]+)+\.[ch]`' docs/ARCHITECTURE.md CONTRIBUTING.md SECURITY.md |
        tr -d '`' | sort -u); do
        [ -f "$path" ] || [ -f "src/$path" ] || { echo "$path is mentioned, but is not there"; bad=1; }
    done
    return $bad
}

# Prose is wrapped at 100 columns; tables, code and addresses are not.
prose_is_wrapped() {
    local file bad=0
    for file in "$@"; do
        awk '/^```/ { code = !code } code || /^\|/ || /https?:/ { $0 = "" } { print }' "$file" |
            LC_ALL=C.UTF-8 grep -nE '^.{101}' | sed "s|^|$file:|" | grep . && bad=1
    done
    return $bad
}

prose_is_wrapped_catches() {
    awk 'BEGIN { for (i = 0; i < 40; i++) printf "ção "; print "" }' >"$WORK/wide.md"
    ! prose_is_wrapped "$WORK/wide.md"
}

check "folders include only what is below them" include_graph
if [ -z "${SANITIZED:-}" ]; then # sanitizers add imports and data of their own
    check "algorithms import nothing but mem* and the assertion handler" algorithm_imports
    check "that check can fail" algorithm_imports_catches
    check "no global state that changes" no_mutable_globals
fi
check "docs/ARCHITECTURE.md shows the include graph" include_picture_is_current
check "the layout is clang-format's" format_is_kept
check "no source file passes 600 lines" files_are_small
check "docs/ARCHITECTURE.md names every source file, and no other" every_file_is_named docs/ARCHITECTURE.md src
check "that check can fail" every_file_is_named_catches
check "the documents mention no source file that is gone" mentioned_files_exist
check "documents are wrapped at 100 columns" prose_is_wrapped ./*.md docs/*.md docs/decisions/*.md
check "that check can fail" prose_is_wrapped_catches
