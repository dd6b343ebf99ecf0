# The museum: each exhibit's fault is found by its command with the sentence that is written there, and the program as it is
# is found to be well by the same.  The gate tries every third one.  REGENERATE=1 writes the pictures and docs/MUSEUM.md anew.

if [ -n "${SANITIZED:-}" ]; then
    echo "ok the museum is open in the plain build only"
    exit 0
fi

ulimit -c 0
# shellcheck source=tests/mutants/build.bash
. tests/mutants/build.bash # and what it exports, once for all
all() { long || [ -n "$WANTED${REGENERATE:-}" ]; }
names() {
    "$CONCLAVE" museum --json | jq -r '.[].name' | while read -r name; do ! is_wanted "$name" || echo "$name"; done |
        if all; then cat; else awk 'NR % 3 == 1'; fi
}
visit() { scripts/museum --quiet "$1" >"$WORK/why.$1" 2>&1 && touch "$WORK/seen.$1"; }
export -f visit
was_seen() { [ -f "$WORK/seen.$1" ] || { cat "$WORK/why.$1"; return 1; }; }
lists_all() { [ "$("$CONCLAVE" museum | grep -c '^  ')" -eq "$(ls museum/*.exhibit | wc -l)" ]; }
tells() { "$CONCLAVE" museum raft-figure-8 | grep -q 'Found by:' && "$CONCLAVE" museum raft-figure-8 | grep -q '^Published: Ongaro'; }

check "all exhibits are listed" lists_all
check "an exhibit is told" tells
check "one that is not there" says "did you mean raft-figure-8" 2 "$CONCLAVE" museum raft-figure-9
drawn() {
    local name
    for name in $(cd "$B/museum" && ls ./*.svg); do
        [ -z "${REGENERATE:-}" ] || cp "$B/museum/$name" docs/museum/
        xmllint --noout "$B/museum/$name" || return 1
        cmp "$B/museum/$name" "docs/museum/$name" || return 1
    done
    ! all || diff <(cd docs/museum && ls ./*.svg) <(cd "$B/museum" && ls ./*.svg)
}

rm -rf "$B/museum"
names | xargs -P "$(nproc)" -I{} bash -c 'visit {}'
for name in $(names); do check "$name" was_seen "$name"; done
check "those of the laboratory are drawn, and docs/museum has these pictures and no others" drawn
check "docs/MUSEUM.md says what the exhibits say" same docs/MUSEUM.md scripts/museum --page
