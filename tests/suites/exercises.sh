# Exercises: each is graded with its own solution and its own mistakes; what a student sees; what a teacher may write; and
# that an answer, whatever it is, ends with a grade.

export TMPDIR=$WORK/tmp
mkdir -p "$TMPDIR"
header=$PWD/include
program=$(realpath "$CONCLAVE")
e() { bounded "$CONCLAVE" exercise --exercises exercises "$@"; }
own() { bounded "$CONCLAVE" exercise --exercises "$WORK/own" "$@"; }

# shows STATUS TEXT COMMAND...: the output contains the text.
shows() {
    local wanted=$1 text=$2 output status
    shift 2
    output=$("$@" 2>&1)
    status=$?
    [ "$status" -eq "$wanted" ] || { echo "exit status $status, not $wanted: $*: $output"; return 1; }
    [[ $output == *"$text"* ]] || { echo "'$text' is not in: $output"; return 1; }
}

# The compiler finds the header wherever the program under test is.
cat >"$WORK/cc" <<SCRIPT
#!/bin/sh
exec gcc -I$header "\$@"
SCRIPT
chmod +x "$WORK/cc"
export CC=$WORK/cc

# ---- All of them ----

many() { [ "$(e | grep -cE '^  [a-z-]+ +(number|text|scenario|lock|election) ')" -ge 20 ]; }
all_kinds() {
    local kind
    for kind in number text scenario lock election; do e | grep -q "^  [a-z-]* *$kind " || { echo "no $kind"; return 1; }; done
}
nothing_left() { [ -z "$(ls -A "$TMPDIR")" ]; }
# The text of every mistake of a number or a text is told to whoever makes it.
every_mistake_is_explained() {
    awk '/^answer /{file = $2 != "number" && $2 != "text"} /^mistake /&&!file{name = FILENAME; sub(/.*\//, "", name); sub(/\..*/, "", name)
        answer = substr($0, 9); getline; sub(/^ +/, ""); print name "\t" answer "\t" $0}' exercises/*.exercise >"$WORK/mistakes"
    [ "$(wc -l <"$WORK/mistakes")" -ge 30 ] || return 1
    while IFS=$'\t' read -r name answer text; do
        shows 1 "$text" e "$name" --answer "$answer" || return 1
    done <"$WORK/mistakes"
}

check "there are many" many
check "of all kinds" all_kinds
check "the solution of each is right, and each mistake wrong where it should be" e --verify
check "whoever makes a known mistake is told which" every_mistake_is_explained
check "no file is left behind" nothing_left

# ---- As a student ----

worst=chang-roberts-worst
check "a question is asked" shows 0 "Give them the ids 1 to 8" e $worst
check "with a hint" shows 0 "How does the id 7 come" e $worst --hint
check "and no more hints than there are" says "has 1 hint" 2 e $worst --hint=2
check "a right answer" shows 0 "Right." e $worst --answer 8,7,6,5,4,3,2,1
check "another right answer" shows 0 "Right." e $worst --answer 7,6,5,4,3,2,1,8
check "a wrong one that nobody has foreseen" shows 1 "More are possible" e $worst --answer 1,3,2,4,5,6,7,8
check "no answer at all" says "fewer numbers" 2 e $worst --answer 1,2
check "an answer is never an option" says "not a number" 2 e $worst --answer --help
check "a number" shows 0 "Right." e central-messages --answer 60
check "in another notation" shows 0 "Right." e odds-majority --answer 0.0000069
check "that is nearly right" shows 1 "it is not 7.1e-6" e odds-majority --answer 7.1e-6
check "what is no number" says "is not a number" 2 e central-messages --answer sixty
check "the solution is computed" shows 0 "by: conclave sim central" e central-messages --solution

scenario_is_begun() { e two-inside-lease --start "$WORK/lease" && [ -f "$WORK/lease/two-inside-lease.scenario" ]; }
overwrites_nothing() {
    says "nothing was written" 2 e two-inside-lease --start "$WORK/lease" && says "nothing was written" 2 e mend-ties --start "$WORK/lease"
}
finish_scenario() { echo 'at 3ms p1 pause 30ms' >>"$WORK/lease/two-inside-lease.scenario"; }
scenario=$WORK/lease/two-inside-lease.scenario
check "a scenario is begun" scenario_is_begun
check "and never overwritten" overwrites_nothing
check "as it is, it is wrong" shows 1 "for longer than" e two-inside-lease --answer "$scenario"
check "the run is shown" shows 1 "exclusion            held" e two-inside-lease --answer "$scenario"
check "finished, it is right" finish_scenario
check "as the judge says" shows 0 "Right." e two-inside-lease --answer "$scenario"
check "of another lock it is none" shows 1 "algorithm is central-lease, and should be quorum" e quorum-split --answer "$scenario"
check "what is not there" says "No such file" 2 e two-inside-lease --answer "$WORK/none.scenario"
check "what is no scenario" says "name the algorithm first" 2 e two-inside-lease --answer README.md

lock=$WORK/mine/mend-coordinator.c
begun() { e mend-coordinator --start "$WORK/mine" && [ -f "$lock" ] && [ -f "$WORK/mine/Makefile" ]; }
# The command that is given for a picture draws it.
drawn() {
    local command
    gcc -I"$header" -fPIC -shared -o "${lock%.c}.so" "$lock" &&
        exits 1 e mend-coordinator --answer "$lock" >"$WORK/wrong" && command=$(tail -1 "$WORK/wrong") && [[ $command == *"conclave check $WORK/mine/mend-coordinator.so"*svg* ]] || return 1
    command=${command#*conclave }
    (cd "$WORK" && exits 1 bounded "$program" $command >/dev/null) && xmllint --noout "$WORK/why.svg"
}
mended() { sed -i 's/^    s->holder = cv_queue_pop/    if (s->holder) return;\n&/' "$lock" && e mend-coordinator --answer "$lock"; }
compiled() { gcc -I"$header" -fPIC -shared -o "${lock%.c}.so" "$lock" && shows 0 "Right." e mend-coordinator --answer "${lock%.c}.so"; }
not_c() { echo 'int x = ;' >"$WORK/bad.c" && shows 2 "it does not compile" e mend-coordinator --answer "$WORK/bad.c"; }
check "a lock to mend is begun" begun
check "the counterexample shows both inside" shows 1 "p2 entered while p1 was inside" e mend-coordinator --answer "$lock"
check "as a picture, too" drawn
check "mended, it is right" mended
check "also when it was compiled before" compiled
check "what does not compile" not_c
check "what is no source" says "is not a FILE.c" 2 e mend-coordinator --answer README.md

endless() { # it never comes back from a step
    sed 's/^answer lock/&\nlimit 1s/' exercises/mend-handover.exercise >"$WORK/own/endless.exercise" &&
        sed 's/^    if (s->holder) return;/    while (s->number == 0) __asm__ volatile("");\n&/' "$lock" >"$WORK/endless.c" &&
        shows 1 "did not come to an end" own endless --answer "$WORK/endless.c"
}
crashes() {
    sed 's/^    if (s->holder) return;/    *(volatile int *)8 = 1;\n&/' "$lock" >"$WORK/wild.c" && shows 1 "it crashed" e mend-coordinator --answer "$WORK/wild.c"
}
check "an algorithm that crashes" crashes
check "still no file is left behind" nothing_left

# ---- As a teacher ----

good() {
    cat <<'TEXT'
title How many
topic Mine
question
  How many?
answer number
hint
  Count.
run sim central --processes 3 --entries 10
expect messages is {answer}
  Three for each.
mistake 20
  And the RELEASE?
explain
  Three for each entry.
TEXT
}
rm -rf "$WORK/own" && mkdir -p "$WORK/own"
written() { good >"$WORK/own/mine.exercise" && own --verify && shows 0 "Right." own mine --answer 30 && shows 1 "And the RELEASE" own mine --answer 20; }
# refused TEXT SED: the exercise, changed, is refused in one line with its place.
refused() { good | sed -E "$2" >"$WORK/own/mine.exercise" && says "$1" 2 own && says "mine.exercise:" 2 own mine --answer 30; }
# unverified TEXT SED: it can be read, and --verify finds the fault.
unverified() { good | sed -E "$2" >"$WORK/own/mine.exercise" && shows 1 "$1" own --verify; }
check "one of one's own" written
check "an unknown word" refused "unknown word 'titel'" 's/^title/titel/'
check "a word twice" refused "there is one already" 's/^title.*/&\n&/'
check "a word that is missing" refused "there is no 'explain'" '/^explain/,$d'
check "nothing after a word" refused "something must follow" 's/^title.*/title/'
check "a text in the line" refused "indented lines that follow" 's/^question/question How many?/'
check "no text" refused "indented lines with its text" '/^  Count/d'
check "a text that belongs to nothing" refused "no word before it" '1s/^/  x\n/'
check "a text where there is none" refused "no indented lines may follow" 's/^title.*/&\n  x/'
check "tabs" refused "indent with spaces" 's/^  Count/ \tCount/'
check "lines that are indented less" refused "indented less" 's/^  Count./&\n more/'
check "an unknown kind" refused "is not number, text" 's/^answer.*/answer song/'
check "a tolerance that is none" refused "a tolerance is from" 's/^answer.*/answer number 90%/'
check "another command" refused "is not sim, check" 's/^run sim/run serve/'
check "a command that writes" refused "is not for exercises" 's/^run.*/& --output x/'
check "also when it is cut short" refused "is not for exercises" 's/^run.*/& --outp=x/'
check "... to one letter" refused "is not for exercises" 's/^run.*/& --o=x/'
check "... or quoted" refused "is not for exercises" "s/^run.*/& '--save-scenario=x'/"
check "... or short" refused "is not for exercises" 's/^run.*/& -o x/'
check "an open quote" refused "a quote is not closed" "s/^run.*/& 'x/"
check "no relation" refused "expected PATH is" 's/^expect.*/expect messages {answer}/'
check "what was not kept" refused "{most} was not kept" 's/^expect.*/expect messages is {most}/'
check "an open brace" refused "'{' without" 's/^run.*/& {x/'
check "a mistake without a reason" refused "say in indented lines" '/And the RELEASE/d'
check "a mistake that is no number" refused "is not a number" 's/^mistake.*/mistake many/'
check "a solution that is known" refused "the command knows it" 's/^explain/solution 30\n&/'
check "no solution" refused "there is no 'solution'" 's/^expect.*/expect messages above {answer}/'
check "a start that there cannot be" refused "start:" 's/^answer.*/&\nstart x.c/'
check "a limit that is none" refused "limit:" 's/^answer.*/&\nlimit 0s/'
check "a mistake that is right" unverified "this mistake is right" 's/^mistake.*/mistake 30/'
check "a path that is not reported" unverified "nothing" 's/^expect messages is \{answer\}/expect masseges is 30/; s/^explain/solution 30\n&/'
check "a command that fails" unverified "failed" 's/^run.*/run sim central --processes 0/'
check "a name that is none" says "small letters" 2 bash -c "rm -f $WORK/own/* && touch $WORK/own/Big.exercise && exec $CONCLAVE exercise --exercises $WORK/own"
check "no exercises" says "no file that ends" 2 bash -c "rm -f $WORK/own/* && exec $CONCLAVE exercise --exercises $WORK/own"
check "no directory" says "No such file" 2 "$CONCLAVE" exercise --exercises "$WORK/nowhere"
check "an algorithm that never ends" endless

# ---- Ended early ----

# A compiler that takes its time: a file says which process it is.
printf '#!/bin/sh\necho $$ >"%s"\nexec sleep 600\n' "$WORK/slow.pid" >"$WORK/slow"
chmod +x "$WORK/slow"
compiler_is_gone() { ! kill -0 "$(cat "$WORK/slow.pid")" 2>/dev/null; }
# ended SIGNAL: while the answer is compiled.  SIGINT is not tried: a shell's background commands ignore it.
ended() {
    local pid status
    rm -f "$WORK/slow.pid"
    CC=$WORK/slow env --default-signal=HUP "$CONCLAVE" exercise --exercises exercises mend-ties --answer exercises/mend-ties.c &
    pid=$!
    await test -s "$WORK/slow.pid" && kill -s "$1" "$pid"
    wait "$pid"
    status=$?
    [ "$status" -eq "$((128 + $(kill -l "$1")))" ] || { echo "exit status $status"; return 1; }
    await compiler_is_gone
}
# A compiler that sends a signal to who has started it.
printf '#!/bin/sh\nkill -s HUP $PPID\nexec "%s" "$@"\n' "$WORK/cc" >"$WORK/rude"
chmod +x "$WORK/rude"
ignored() {
    local status
    (trap '' HUP && CC=$WORK/rude exec "$CONCLAVE" exercise --exercises exercises mend-ties --answer exercises/mend-ties.c) >"$WORK/ignored.out" 2>&1
    status=$?
    [ "$status" -eq 1 ] || { echo "exit status $status"; cat "$WORK/ignored.out"; return 1; }
}
# While a command judges it.
ended_in_a_command() {
    local pid child status
    sed 's/^limit 1s/limit 60s/' "$WORK/own/endless.exercise" >"$WORK/own/long.exercise" || return 1
    "$CONCLAVE" exercise --exercises "$WORK/own" long --answer "$WORK/endless.c" >"$WORK/early.out" 2>&1 &
    pid=$!
    judges() { grep -qs -- --json /proc/"$(cat "/proc/$pid/task/$pid/children" 2>/dev/null | cut -d' ' -f1)"/cmdline; }
    await judges && child=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children") && kill "$pid"
    wait "$pid"
    status=$?
    [ "$status" -eq 143 ] && [ -n "$child" ] && ! kill -0 "$child" 2>/dev/null
}
with_words() { CC="env  LANG=C $WORK/cc" e mend-ties --answer exercises/mend-ties.c >"$WORK/words.out" 2>&1; [ $? -eq 1 ]; }

check "a compiler is several words" with_words
check "a compiler that is not there" says "there is no compiler 'no-such'" 2 env CC='no-such thing' \
    "$CONCLAVE" exercise --exercises exercises mend-ties --answer exercises/mend-ties.c
check "ended by SIGTERM" ended TERM
check "ended by SIGHUP" ended HUP
check "not by one that is ignored" ignored
check "ended in a command" ended_in_a_command
check "and no file is left behind" nothing_left
check "killed" ended KILL
rm -rf "${TMPDIR:?}"/*

# ---- Misuse, and where they are ----

check "an unknown name" says "did you mean split-brain" 2 e split-brian
check "two at once" says "one at a time" 2 e split-brain two-tokens
check "two wishes at once" says "one of --answer" 2 e split-brain --hint --solution
check "an answer to nothing" says "which?" 2 e --answer 1
check "nothing to begin with" says "begins with nothing" 2 e central-messages --start "$WORK/x"
installed() {
    install -D "$CONCLAVE" "$WORK/usr/bin/conclave" && mkdir -p "$WORK/usr/share/conclave" &&
        says "not installed" 2 "$WORK/usr/bin/conclave" exercise && cp -r exercises "$WORK/usr/share/conclave/" &&
        "$WORK/usr/bin/conclave" exercise | grep -q split-brain
}
check "they are found where they are installed" installed
