# The rules that keep the tree in order, checked on the tree itself.

# Folders in order: each may include those before it and itself, and what is listed behind it; no other.
include_graph() {
    local -A may=(
        [base]="base"
        [process]="base process"
        [zk]="base zk"
        [tree]="base zk tree"
        [raft]="base raft"
        [raftlab]="base raft raftlab"
        [net]="base net"
        [store]="base zk tree raft store"
        [server]="base zk tree raft store net server"
        [client]="base zk tree client"
        [mutex]="base process mutex"
        [election]="base process election"
        [detector]="base process detector"
        [judge]="base process judge"
        [catalogue]="base process mutex election detector catalogue"
        [sim]="base process detector judge catalogue sim"
        [check]="base process judge check"
        [lab]="base process judge check catalogue sim lab"
        [cli]="base process judge check catalogue sim lab store server client cli"
    )
    local bad=0 file folder included
    while IFS=: read -r file included; do
        folder=${file#src/}
        folder=${folder%%/*}
        [[ " ${may[$folder]:-} " == *" $included "* ]] ||
            { echo "$file includes $included/"; bad=1; }
    done < <(grep -rHoE '^#include "[a-z]+/' src --include='*.[ch]' |
        sed -E 's/^([^:]*):#include "([a-z]+)\/$/\1:\2/')
    return $bad
}

# An algorithm does no I/O, allocates nothing, reads no clock: its object file could not.  Nor could
# those of the consensus core, which use each other.
algorithm_imports() {
    local bad=0 object symbol
    for object in "$B"/obj/mutex/*.o "$B"/obj/election/*.o "$B"/obj/detector/*.o \
        "$B"/obj/raft/{terms,config,election,replicate,step}.o; do
        [ -f "$object" ] || continue
        for symbol in $(nm -u "$object" | awk '{print $2}'); do
            case $object:$symbol in
            *:memcpy | *:memset | *:memmove | *:memcmp | *:cv_broken) ;;
            */raft/*:raft_*) ;;
            *) echo "$object imports $symbol"; bad=1 ;;
            esac
        done
    done
    return $bad
}

# ... and the check itself sees what is forbidden.
algorithm_imports_catches() {
    mkdir -p "$WORK/obj/mutex"
    echo 'int time(long *); int f(void) { return time(0); }' | gcc -x c -c -o "$WORK/obj/mutex/x.o" -
    ! B=$WORK algorithm_imports >/dev/null
}

no_mutable_globals() {
    local found
    found=$(objdump -t "$B"/obj/*/*.o | awk '$3 == "O" && $4 ~ /^\.(data|bss)$/ || $2 == "O" &&
        $3 ~ /^\.(data|bss)$/ {print $NF}')
    [ -z "$found" ] || { echo "$found"; return 1; }
}

format_is_kept() { clang-format --dry-run -Werror $(git ls-files '*.c' '*.h'); }

files_are_small() {
    local big
    big=$(git ls-files 'src/*.c' 'src/*.h' | xargs wc -l | awk '$2 != "total" && $1 > 600')
    [ -z "$big" ] || { echo "$big"; return 1; }
}

check "folders include only what is below them" include_graph
if [ -z "${SANITIZED:-}" ]; then # sanitizers add imports and data of their own
    check "algorithms import nothing but mem* and the assertion handler" algorithm_imports
    check "that check can fail" algorithm_imports_catches
    check "no global state that changes" no_mutable_globals
fi
check "the layout is clang-format's" format_is_kept
check "no source file passes 600 lines" files_are_small
