# What bench/serve and bench/ensemble share: figures, verdicts, the load generator.
# Before: root, work (a directory of the run's own), sections (those that are wanted; none: all).
# shellcheck disable=SC2154

calc() { awk "BEGIN{printf \"$1\", $2}"; }
holds() { awk "BEGIN{exit !($1)}"; }
bar() { if holds "$1 $2 $3"; then echo cleared; else echo MISSED; fi; }
wanted() { [ -z "$sections" ] || [[ " $sections " == *" $1 "* ]]; }

# The machine that the figures are of.
machine() {
    local name
    name=$(lscpu 2>/dev/null | awk -F': *' '/^Vendor ID|^Model name/ && $2 != "-" { printf "%s ", $2 }')
    echo "On $(uname -m), ${name:-a processor without a name }($(nproc) cores), $(stat -f -c %T "${work:-.}"), Linux $(uname -r)"
}

line() { printf '%-19s %10s %8s %10s %8s %10s %8s  %7s %7s  %7s %7s  %s\n' "$@"; }
shown() { if [ -n "$1" ]; then calc %.0f "$1"; else echo -; fi; }
ratio() { if [ -n "$1" ] && [ -n "$2" ]; then calc %.2f "$1 / $2"; else echo -; fi; }

# Prints the share of the machine that other processes use, if it spoils the figures; called when none of ours run.
others() {
    local -a before after
    read -r -a before </proc/stat
    sleep 1
    read -r -a after </proc/stat
    awk -v before="${before[*]}" -v after="${after[*]}" 'BEGIN {
        split(before, b); count = split(after, a)
        for (i = 2; i <= count; i++) all += a[i] - b[i]
        busy = 1 - (a[5] - b[5] + a[6] - b[6]) / all
        if (busy > 0.1) printf "Others use %.0f%% of this machine: these figures are not to be trusted\n", busy * 100
    }'
}

# build PROGRAM SOURCE...: into the directory of the run, with the libraries that the sources need.
build() {
    gcc -std=gnu17 -D_GNU_SOURCE -O2 -I"$root/src" -o "$work/$1" "${@:2}" "$root"/src/base/*.c -lm -lzstd \
        2>"$work/log" && return
    echo "$1.c cannot be built: $(head -1 "$work/log")"
    return 1
}
# A program of the client library.
build_client() {
    gcc -std=gnu17 -D_GNU_SOURCE -O2 -I"$root/include" -o "$work/$1" "$root/bench/$1.c" \
        "$(dirname "$conclave")/libconclave.a" -lssl -lcrypto -lm -pthread
}
build_load() { build load "$root"/bench/load*.c "$root"/src/wire/zk/*.c; }

# Files in memory are not synced to a disk.
warn_if_in_memory() {
    if [ "$(stat -f -c %T "$work")" = tmpfs ]; then echo "$work is in memory: nothing here goes to a disk"; fi
}
