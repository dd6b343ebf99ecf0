# What pictures show: drawings of the network, deadlocks, elections, pages.  What they say about a run is in
# tests/unit/test_picture.c; here it is what a reader finds in the file.
draw() { # FORMAT NAME: a scenario, to $WORK/NAME.FORMAT
    "$CONCLAVE" sim --scenario "scenarios/$2.scenario" --trace "$1" >"$WORK/$2.$1" 2>/dev/null
    xmllint --noout "$WORK/$2.$1"
}
has() { grep -F -- "$2" "$WORK/$1" >/dev/null; }       # FILE TEXT
count() { [ "$(grep -c -F -- "$2" "$WORK/$1")" = "$3" ]; } # FILE TEXT TIMES
captions() { sed -n 's/.*<text class="caption"[^>]*>\([^<]*\)<.*/\1/p' "$WORK/$1" | tr '\n' '/'; }
captioned() { [ "$(captions "$1")" = "$2" ] || { captions "$1"; return 1; }; }

for file in scenarios/*.scenario; do
    check "$(basename "$file" .scenario): drawings" draw graph "$(basename "$file" .scenario)"
done
check "Yo-Yo a to e, and on" captioned yo-yo.graph \
    "a  ID/b  the edges have changed/c  YO-/d  -YO/e  the edges have changed/f  YO-/g  -YO/h  the edges have changed/i  LEADER/j  the end/"
check "its edges are cut" has yo-yo.graph '<path class="edge cut"'
check "and directed" has yo-yo.graph 'marker-end="url(#edge-head)"'
check "its legend has sources and sinks" eval "has yo-yo.graph '>source<' && has yo-yo.graph '>sink<'"
check "Franklin's rounds" captioned franklin.graph "a  VALUE/b  VALUE/c  VALUE/d  LEADER/e  the end/"
check "whose leader has a crown, twice" count franklin.graph '<use xlink:href="#elected"' 2
check "the bully's drawings" captioned bully-003.graph \
    "a  ELECTION/b  ANSWER/c  ELECTION/d  ANSWER/e  COORDINATOR/f  the end/"
check "lists with their initiator" eval "has ring-003.graph '>[6,0]<' && has ring-003.graph '>[3,4,5,6]<'"
drawing() { "$CONCLAVE" sim --scenario "scenarios/$1.scenario" --trace graph 2>/dev/null | sed '1,/<\/defs>/d'; } # without its styles
for name in yo-yo franklin maekawa-seven bully-001 bully-003 bully-004 chang-roberts ring-003; do
    check "$name is drawn as before" same "tests/golden/$name.graph" drawing "$name"
done
quorums() {
    "$CONCLAVE" sim maekawa --processes 7 --entries 7 --think 0ms --trace graph 2>/dev/null >"$WORK/quorums.graph"
    count quorums.graph '<path class="quorum"' 7
}
check "seven quorums" quorums
check "an id that the name does not have" eval \
    "'$CONCLAVE' sim franklin --processes 4 --ids 40,10,30,20 --trace graph 2>/dev/null | grep '>id 40<' >/dev/null"

for format in svg graph; do
    draw "$format" maekawa-deadlock
    check "a deadlock: who waits for whom ($format)" has "maekawa-deadlock.$format" '<title>P1 waits for P3 at P4</title><path class="waits-for"'
    check "three wait ($format)" count "maekawa-deadlock.$format" '</title><path class="waits-for"' 3
    check "and what the judge says ($format)" has "maekawa-deadlock.$format" '>deadlock, starvation, bounded_wait violated: P1, P3 and 1 more wait'
    draw "$format" maekawa
    check "no deadlock, no such arrow ($format)" count "maekawa.$format" '<path class="waits-for"' 0
done

draw svg franklin
check "an election is coloured: active, in three rounds, and passive" eval \
    "has franklin.svg 'fill=\"#bbf7d0\"' && has franklin.svg 'fill=\"#86efac\"' && has franklin.svg 'fill=\"#4ade80\"' && has franklin.svg 'fill=\"#fde68a\"'"
check "rounds have numbers" count franklin.svg '<text class="round"' 13
check "and names" eval "has franklin.svg '>active<' && has franklin.svg '>passive<' && has franklin.svg '>follows<'"

for format in svg graph; do
    draw "$format" detector-fixed
    draw "$format" bully-partition
done
check "who has waited for an answer in vain follows its leader as before" count detector-fixed.svg '>normal<' 0
check "a split, and who is on which side" eval "has bully-partition.graph '>network split: p1 p2 | p3 p4 p5<'"
check "the drawing in which a property is violated" eval "has bully-partition.graph '>violated<'"
drawn() { # FILE FORMAT ARGUMENTS...
    "$CONCLAVE" sim "${@:3}" --trace "$2" >"$WORK/$1" 2>/dev/null
    xmllint --noout "$WORK/$1"
}
drawn pages.svg svg bully --detector phi:8 --crash-rate 0.5/s --recover --time-limit 20s
check "on which page that is" grep -E '>The violation is on page [0-9]+.<' "$WORK/pages.svg"
left_while_telling() { # the colour is that of the state: who releases is not inside any more
    [ "$(awk '/ RELEASE</ { here = 1 } here && /class="node"/ { print gsub(/#4ade80/, ""); here = 0 }' "$WORK/maekawa-seven.graph" | sort -u)" = 0 ]
}
mirrored() { # ARGUMENTS...: both sides of a ring are at the same heights
    drawn ring.graph graph chang-roberts --processes "$1" &&
        [ "$(awk '/class="node"/ { print; exit }' "$WORK/ring.graph" | grep -o 'cy="[0-9]*"' | sort | uniq -c | awk '$1 == 1' | wc -l)" -eq 1 ]
}
check "a ring of 15 is even" mirrored 15
check "a ring of 27 is even" mirrored 27
drawn star.graph graph yo-yo --processes 20 --topology star
check "a star has its hub in the middle" grep '<title>p1[^0-9][^p]*cx="210" cy="210"' "$WORK/star.graph"
longest_title() {
    printf 'title %s\nalgorithm central\nprocesses A B\nat 0ms A acquire\n' "$(head -c 127 /dev/zero | tr '\0' w)" >"$WORK/wide.scenario"
    drawn wide.svg graph --scenario "$WORK/wide.scenario" && has wide.svg 'style="font-size:9px"'
}
check "a long title is smaller" longest_title
too_long() {
    sed 's/www/wwww/' "$WORK/wide.scenario" >"$WORK/wider.scenario"
    says "a title has at most 127 bytes" 2 "$CONCLAVE" sim --scenario "$WORK/wider.scenario"
}
check "a title that is too long" too_long
few_letters() { # Mermaid's viewers refuse 50,000
    [ "$("$CONCLAVE" sim roucairol-carvalho --processes 64 --think 0ms --entries 300 --trace mermaid 2>/dev/null | wc -c)" -lt 47000 ]
}
check "a sequence diagram that viewers take" few_letters

same_again() { # FORMAT ARGUMENTS...: the same bytes
    local format=$1
    shift
    "$CONCLAVE" sim "$@" --trace "$format" 2>/dev/null >"$WORK/one" && "$CONCLAVE" sim "$@" --trace "$format" 2>/dev/null | cmp - "$WORK/one"
}
check "the same seed, the same drawings" same_again graph yo-yo --processes 25 --topology random:0.2 --seed 3
check "the same seed, the same diagram" same_again svg quorum --crash-rate 2/s --recover --entries 40 --seed 3

fits() { # ARGUMENTS...: at most 4,500 pixels wide and high
    "$CONCLAVE" sim "$@" 2>/dev/null >"$WORK/bounded.svg"
    xmllint --noout "$WORK/bounded.svg" && [ "$(sed -n 's/.* width="\([0-9]*\)" height=.* viewBox.*/\1/p' "$WORK/bounded.svg")" -le 4500 ] &&
        [ "$(sed -n 's/.* height="\([0-9]*\)" viewBox.*/\1/p' "$WORK/bounded.svg")" -le 4500 ]
}
for format in svg graph; do
    check "a long run ($format)" fits central --entries 2000 --trace "$format"
    check "has pages ($format)" has bounded.svg '>Page 1 of '
    check "and a second ($format)" fits central --entries 2000 --trace "$format" --page 2
    check "which says so ($format)" has bounded.svg '>Page 2 of '
    check "a page beyond the last ($format)" fits central --entries 2000 --trace "$format" --page 100000
    check "is the last ($format)" has bounded.svg 'shows the beginning.<'
    check "many processes ($format)" fits ricart-agrawala --processes 300 --entries 3 --trace "$format"
    check "heartbeats ($format)" fits majority-terms --crash-rate 0.2/s --recover --time-limit 30s --trace "$format" --page 2
    check "are folded ($format)" has bounded.svg 'folded'
done
# Whoever recovers does not know where the token is, and the part that is drawn need not be connected.
check "a tree that has lost its way" fits raymond --processes 7 --at '2ms p3 crash' --at '4ms p3 recover' --trace graph
for seed in 30 35; do
    check "a part of a network ($seed)" fits yo-yo --processes 300 --topology random:0.0167 --event-limit 500 --seed $seed --trace graph
done
check "how many processes are left out" eval "fits chang-roberts --processes 300 --trace graph && has bounded.svg '>Only the first 120 of 300 processes are drawn.<'"

printf 'title <a> & "b"\nalgorithm central\nprocesses A B\nat 0ms A acquire\n' >"$WORK/names.scenario"
for format in svg graph; do
    check "a title with < and & ($format)" eval \
        "'$CONCLAVE' sim --scenario '$WORK/names.scenario' --trace $format 2>/dev/null | xmllint --xpath '//*[@class=\"title\"]/text()' - | grep -F '&lt;a&gt; &amp; \"b\"' >/dev/null"
done
check "a counterexample as drawings" eval \
    "'$CONCLAVE' check maekawa --plain --processes 3 --property deadlock --trace graph --output '$WORK/counter.svg' >/dev/null; xmllint --noout '$WORK/counter.svg'"
check "a page of text" says "only svg and graph have pages" 2 "$CONCLAVE" sim central --trace text --page 2
check "page nought" says "page: '0' is not a whole number above 0" 2 "$CONCLAVE" sim central --trace svg --page 0
check "a page without a picture" says "page: goes with --trace" 2 "$CONCLAVE" sim central --page 2

# ---- Labels, as a browser lays them out ----

with_processes
labels() { bounded /usr/bin/python3 tests/browser/labels.py "$@"; }
# picture NAME ARGUMENTS...: a run in both formats.  What cannot be run like that is left out.
picture() {
    local name=$1 format
    shift
    for format in svg graph; do
        "$CONCLAVE" sim "$@" --trace $format >"$WORK/labels/$name.$format.svg" 2>/dev/null
        case $? in
        0 | 1) xmllint --noout "$WORK/labels/$name.$format.svg" || return 1 ;;
        2) rm "$WORK/labels/$name.$format.svg" ;;
        *) return 1 ;;
        esac
    done
}
faults=(--crash-rate 3/s --recover --pause-rate 2/s --partition-rate 2/s --loss 0.1 --time-limit 2s)
hasty=(--crash-rate 5/s --recover --amnesia --delay exponential:3ms --reorder --detector fixed:12ms --time-limit 1s)
make_pictures() {
    local file algorithm seed seeds=0
    long && seeds=20
    mkdir -p "$WORK/labels"
    for file in scenarios/*.scenario; do picture "$(basename "$file" .scenario)" --scenario "$file" || return 1; done
    "$CONCLAVE" list --json | jq -r '.[].algorithm' >"$WORK/algorithms"
    while read -r algorithm; do
        picture "$algorithm-faults" "$algorithm" --processes 6 --seed 3 "${faults[@]}" || return 1
        picture "$algorithm-pt" "$algorithm" --processes 3 --seed 5 --page 2 --lang pt "${hasty[@]}" || return 1
        for ((seed = 1; seed <= seeds; seed++)); do
            picture "$algorithm-$seed" "$algorithm" --processes $((2 + seed)) --seed "$seed" "${faults[@]}" || return 1
            picture "$algorithm-$seed-pt" "$algorithm" --processes $((2 + seed)) --seed "$seed" --lang pt "${hasty[@]}" || return 1
        done
    done <"$WORK/algorithms"
    [ "$(find "$WORK/labels" -name '*.svg' | wc -l)" -gt 200 ]
}
check "pictures of all kinds of runs" make_pictures
check "no two labels lie on each other" labels "$WORK"/labels/*.svg
printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 99">%s</svg>' \
    '<text x="9" y="30">these</text><text x="30" y="36" transform="rotate(9)">meet</text>' >"$WORK/meet.svg"
printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 99"><text x="70" y="30">beyond</text></svg>' >"$WORK/beyond.svg"
noticed() {
    labels "$WORK/meet.svg" "$WORK/beyond.svg" >"$WORK/noticed"
    local status=$?
    [ $status -eq 1 ] || return $status
    diff - "$WORK/noticed" <<<"$WORK/meet.svg: these | meet"$'\n'"$WORK/beyond.svg: beyond: cut off"
}
check "two that do are noticed, and one that is cut off" noticed
