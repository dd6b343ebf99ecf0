# An algorithm of one's own: as a student begins one, compiles it alone, uses it, breaks it, and sees why; and what is no
# algorithm is refused in one line.

root=$WORK/root/usr
mine=$WORK/mine
header=$PWD/include
tree=$PWD

install_here() {
    MAKEFLAGS='' make -s install-headers DESTDIR="$WORK/root" PREFIX=/usr &&
        install -D "$CONCLAVE" "$root/bin/conclave" && [ -f "$root/include/conclave/algorithm.h" ]
}
c() { (cd "$WORK" && bounded "$root/bin/conclave" "$@"); }
compile() { MAKEFLAGS='' make -s -C "$WORK/$1" CFLAGS="-O1 -Wall -Wextra -Wshadow -Werror -I$root/include"; }

# ---- As a student ----

alone() { # the header needs nothing else, in any of these
    local language
    for language in c11 c17 gnu17 c2x; do
        echo '#include <conclave/algorithm.h>' |
            gcc -std=$language -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -I"$root/include" -fsyntax-only -x c - || return 1
    done
}
makefile_is_short() { [ "$(wc -l <"$mine/Makefile")" -eq 5 ]; }
own_flags() { MAKEFLAGS='' make -s -C "$mine" && rm "$mine/mine.so"; } # the header is found without being told
imports_nothing() { ! nm -D --undefined-only "$mine/mine.so" | grep -vE ' (w|U (abort|fprintf|stderr|mem[a-z]+|__stack_chk_fail)(@.*)?$)'; }
overwrites_nothing() {
    local before
    before=$(cat "$mine"/* | cksum)
    says "nothing was written" 2 c new election mine && [ "$before" = "$(cat "$mine"/* | cksum)" ]
}
explained() {
    local text
    text=$(c explain mine/mine.so) && [[ $text == "mine: one coordinator with a queue."*"What breaks it"*REQUEST*number* ]]
}
explained_elsewhere() { # without its source beside it
    mkdir -p "$WORK/elsewhere" && cp "$mine/mine.so" "$WORK/elsewhere/" &&
        c explain elsewhere/mine.so | grep 'one coordinator with a queue' >/dev/null
}
# The same runs as the lock that it is a copy of.
same_run() {
    json '.algorithm == "mine/mine.so" and .entries == 100 and .messages == 300 and .servers == 1' c sim mine/mine.so --json
}
names_kept() {
    local text
    text=$(c sim mine/mine.so --entries 1 --trace text --lang pt) && [[ $text == *"quer o lock"*"REQUEST number="*holder=* ]]
}
drawn() { c sim mine/mine.so --entries 4 --trace svg --output "$WORK/run.svg" && xmllint --noout "$WORK/run.svg"; }
merged() {
    c sim mine/mine.so --runs 6 --share 1/2 --json >"$WORK/1.json" && c sim mine/mine.so --runs 6 --share 2/2 --json >"$WORK/2.json" &&
        json '.completed == 6 or .runs == 6' c merge "$WORK/1.json" "$WORK/2.json" --json
}
# The reductions leave out states, and no verdict.
reduced() {
    json '.states == 180 and .verdicts.exclusion == "held"' c check mine/mine.so --json &&
        json '.states == 25 and .verdicts.exclusion == "held" and .verdicts.starvation == "held"' c check mine/mine.so --reduce all --json
}
compared() { json 'map(select(.algorithm == "mine/mine.so").messages_per_entry) == [3, 3]' c compare mine/mine.so central --processes 4 --json; }
replayed() { # a scenario names it: from where the program runs, or from where the scenario is
    printf 'title two\nalgorithm mine/mine.so\nprocesses a b\nat 0ms a acquire hold 5ms\nat 1ms b acquire\nexpect order a b\n' >"$WORK/one.scenario" &&
        sed 's|mine/mine|./mine|' "$WORK/one.scenario" >"$mine/two.scenario" &&
        c sim --scenario one.scenario && c sim --scenario mine/two.scenario && (cd "$mine" && "$root/bin/conclave" sim --scenario two.scenario)
}

check "the header and the program can be installed" install_here
check "the header stands alone" alone
check "a lock is begun" c new lock mine
check "its Makefile has five lines" makefile_is_short
check "which find the header" own_flags
check "it compiles without a warning" compile mine
check "alone: it needs nothing of the program" imports_nothing
check "a second beginning overwrites nothing" overwrites_nothing
check "it runs as a built-in one does" same_run
check "with faults" exits 1 c sim mine/mine.so --crash-rate 2/s --recover --loss 0.1
check "in Portuguese with the names of its code" names_kept
check "many times" c sim mine/mine.so --runs 100 --jobs 2
check "in shares" merged
check "it is drawn" drawn
check "it is checked, with reductions too" reduced
check "it is compared" compared
check "it is explained by its own comment" explained
check "and without it by its summary" explained_elsewhere
check "scenarios name it" replayed
check "its name need not have a slash" env -C "$mine" "$root/bin/conclave" sim mine.so

# ---- Broken, and seen ----

break_it() { # the line that its comment proposes to leave out
    sed -i '/without this line two are inside/d' "$mine/mine.c" && compile mine
}
counterexample() {
    local text
    text=$(c check mine/mine.so --processes 2)
    [ $? -eq 1 ] && [[ $text == *"exclusion            violated after"*"p2 ENTERS"* ]] || { echo "$text"; return 1; }
}
saved() {
    rm -f "$WORK/found.scenario"
    exits 1 c check mine/mine.so --processes 2 --save-scenario "$WORK/found.scenario" >/dev/null &&
        c sim --scenario found.scenario --trace svg --output "$WORK/found.svg" | grep 'expectation was met' >/dev/null &&
        xmllint --noout "$WORK/found.svg"
}
check "a line is left out" break_it
check "the checker shows two inside" counterexample
check "the simulator finds it, too" exits 1 c sim mine/mine.so
check "the counterexample is a scenario that names it" saved

check "an election is begun" c new election my-ring
check "it compiles" compile my-ring
check "it elects" json '.leader_name == "p5" and .verdicts.uniqueness == "held"' c sim my-ring/my-ring.so --json
check "it is checked" json '.end == "complete" and .verdicts.termination == "held"' c check my-ring/my-ring.so --json
check "it is compared with another" json 'length > 8' c compare my-ring/my-ring.so chang-roberts --json
check "broken" sed -i 's/id > env->id/id < env->id/' "$WORK/my-ring/my-ring.c"
check "it still compiles" compile my-ring
check "and the checker shows it" exits 1 c check my-ring/my-ring.so

check "new: no name" says "what is it called" 2 c new lock
check "new: not a name" says "is not a name" 2 c new lock ../x
check "new: not a kind" says "neither lock nor election" 2 c new semaphore x

# ---- In the tree: one file, and no list ----

planted() {
    local objects
    sed 's/"mine"/"planted"/; s/(mine)/(planted)/' examples/own/lock.c >"$WORK/planted.c" &&
        awk -f scripts/roll.awk src/algorithms/mutex/*.c "$WORK/planted.c" src/algorithms/election/*.c >"$WORK/roll.c" &&
        gcc -std=gnu17 -O1 -DCV_BUILT_IN -Isrc -Iinclude -c -o "$WORK/roll.o" "$WORK/roll.c" &&
        gcc -std=gnu17 -O1 -DCV_BUILT_IN -Isrc -Iinclude -c -o "$WORK/planted.o" "$WORK/planted.c" || return 1
    objects=$(find "$B/obj" -name '*.o' ! -path "*/algorithms/roll.o" | while read -r object; do
        source=${object#"$B"/obj/}
        if [ -f "src/${source%.o}.c" ] || [ -f "${object%.o}.c" ]; then echo "$object"; fi
    done)
    gcc -fno-lto -o "$WORK/with" $objects "$WORK/roll.o" "$WORK/planted.o" $LDLIBS &&
        "$WORK/with" sim planted && json 'map(.algorithm) | index("planted") != null' "$WORK/with" list --json
}
every_source_is_listed() {
    ! awk -f scripts/roll.awk src/algorithms/mutex/*.c tests/unit/test_rng.c 2>/dev/null >/dev/null
}
if [ -z "${SANITIZED:-}" ]; then check "a file among the algorithms is in the catalogue" planted; fi
check "a file that describes none is noticed" every_source_is_listed

# ---- What is no algorithm ----

# variant NAME SED [HEADERS]: the lock, changed, as $WORK/NAME.so.
variant() {
    sed -e "$2" "$tree/examples/own/lock.c" >"$WORK/$1.c" && gcc -O0 -w -I"${3:-$header}" -fPIC -shared -o "$WORK/$1.so" "$WORK/$1.c"
}
# refused NAME TEXT SED: sim, check and explain say so in one line.
refused() {
    variant "$1" "$3" && says "$2" 2 c sim "$1.so" && says "$2" 2 c check "$1.so" && says "$2" 2 c explain "$1.so"
}
# stopped NAME TEXT SED: it is loaded, and stopped at a step by the simulator and by the checker.
stopped() { variant "$1" "$3" && says "$2" 2 c sim "$1.so" && says "$2" 2 c check "$1.so"; }

other_processor() {
    variant foreign '' && printf '\x08\x00' | dd of="$WORK/foreign.so" bs=1 seek=18 conv=notrunc status=none &&
        says "another processor" 2 c sim foreign.so
}
cut_short() {
    local size
    variant whole '' || return 1
    for size in 0 10 40 64 1000 5000; do
        head -c $size "$WORK/whole.so" >"$WORK/cut.so"
        says "cut.so" 2 c sim cut.so || return 1
    done
}
no_library() {
    gcc -O0 -w -I"$header" -c -o "$WORK/object.so" examples/own/lock.c && says "compile the algorithm with -shared" 2 c sim object.so &&
        echo 'int main(void) { return 0; }' | gcc -o "$WORK/program.so" -x c - && says "cannot be loaded" 2 c sim program.so &&
        echo 'int x;' | gcc -shared -fPIC -o "$WORK/empty.so" -x c - && says "it has no algorithm" 2 c sim empty.so &&
        echo 'int conclave_algorithm[9];' | gcc -shared -fPIC -o "$WORK/other.so" -x c - && says "CV_ALGORITHM" 2 c sim other.so
}
not_a_file() {
    echo text >"$WORK/text.so" && mkdir -p "$WORK/folder.so" && mkfifo "$WORK/pipe.so" && says "not a shared library" 2 c sim text.so &&
        says "not a file" 2 c sim folder.so && says "not a file" 2 c sim pipe.so && says "No such file" 2 c sim none.so &&
        says "ends in .so" 2 c sim ./mine/mine && says "No such file" 2 c sim --processes 3 none.so &&
        says "No such file" 2 c compare none.so && says "No such file" 2 c sim --entries 5 --seed 2 ./x/none.so
}
# with_header NAME SED: the installed header, changed.
with_header() {
    mkdir -p "$WORK/$1.include/conclave" && sed -e "$2" "$header/conclave/algorithm.h" >"$WORK/$1.include/conclave/algorithm.h" &&
        ! cmp -s "$header/conclave/algorithm.h" "$WORK/$1.include/conclave/algorithm.h"
}
other_version() {
    with_header newer 's/CV_MODULE_VERSION = 3,/CV_MODULE_VERSION = 7,/' && variant newer '' "$WORK/newer.include" &&
        says "against version 7" 2 c sim newer.so
}
other_layout() {
    with_header longer 's/^    uint16_t traits;/    uint64_t traits, more;/' && variant longer '' "$WORK/longer.include" &&
        says "another conclave/algorithm.h" 2 c sim longer.so
}
scenario_names_none() {
    printf 'algorithm ./none.so\n' >"$WORK/none.scenario" && says "none.scenario:1: ./none.so: No such file" 2 c sim --scenario none.scenario
}
# dies NAME TEXT STATUS SED: it ends the program at a step, with one line of ours that says why.
dies() {
    local status
    variant "$1" "$4" || return 1
    (ulimit -c 0; cd "$WORK" && exec "$root/bin/conclave" sim "$1.so" --entries 5 >/dev/null 2>"$WORK/$1.err")
    status=$?
    [ $status -eq "$3" ] && grep "$2" "$WORK/$1.err" >/dev/null && [ "$(grep -c "^conclave: .*$1.so" "$WORK/$1.err")" -eq 1 ] ||
        { echo "$status"; cat "$WORK/$1.err"; return 1; }
}
# Also where other threads take steps.
dies_in_thread() {
    (ulimit -c 0; cd "$WORK" && exec "$root/bin/conclave" sim "$1.so" --runs 4 --jobs 2 >/dev/null 2>"$WORK/$1.err")
    [ $? -eq "$3" ] && [ "$(grep -c "$2" "$WORK/$1.err")" -eq 1 ] || { cat "$WORK/$1.err"; return 1; }
}
# At its first line of a step: SED is what does it.
at_step() { echo "s/^    if (cv_serves(env))\$/    $1;\n&/"; }

check "what is not a file" not_a_file
check "what is not a library, or has no algorithm" no_library
check "one for another processor" other_processor
check "one that is cut" cut_short
check "one of another version" other_version
check "one with other structs" other_layout
check "a missing function" refused missing "undefined symbol: nowhere" 's/^static void grant_next.*/void nowhere(void);\n&/; s/^    if (s->holder) return;/    nowhere();\n&/'
check "no name" refused noname ".name is not a line" 's/\.name = "mine"/.name = 0/'
check "no summary" refused nosummary ".summary is not a line" 's/\.summary = .*/.summary = 0,/'
check "no step" refused nostep "there is no .step" 's/^    CV_MACHINE,/&.step = 0,/'
check "no layout" refused nolayout "there is no .layout" 's/^    CV_MACHINE,/&.layout = 0,/'
check "no state" refused nostate "there is no .state" 's/^    CV_MACHINE,/&.state = 0,/'
check "too many messages" refused kinds ".message_count is 200" 's/^    CV_MACHINE,/&.message_count = 200,/'
check "too many timers" refused timers ".timers is 9" 's/^    CV_MACHINE,/&.timers = 9,/'
check "options that are not there" refused options ".option_count is 3" 's/^    CV_MACHINE,/&.option_count = 3,/'
check "no problem to solve" refused problem ".problem is neither" 's/CV_MUTEX/99/'
check "a topology that is none" refused topology ".topology is unknown" 's/^    CV_MACHINE,/&.topology = 9,/'
check "servers without a name" refused servers "go together" '/server_name/d'
check "a message without a name" refused nameless "a message has no name of" 's/CV_TABLE("GRANT", numbered)/{0, numbered_fields, 0, 1, 8, 0, 0}/'
check "a record larger than its fields" refused larger "take 8 bytes, and its size is 4000" 's/CV_TABLE("GRANT", numbered)/{"GRANT", numbered_fields, 0, 1, 4000, 0, 0}/'
check "a field outside of its record" refused outside "is not where the one before it ends" 's/CV_TABLE("GRANT", numbered)/{"GRANT", (struct cv_field[]){{"x", 4000, CV_U64, 0, 0}}, 0, 1, 8, 0, 0}/'
check "a field without a type" refused typeless "has an unknown type" 's/CV_TABLE("GRANT", numbered)/{"GRANT", (struct cv_field[]){{"x", 0, 99, 0, 0}}, 0, 1, 8, 0, 0}/'
check "a queue without links" refused unlinked "a queue needs one" 's/F(R, link, link, INNER)/F(R, u64, link, INNER)/'
check "too many rows" stopped rows "rows from process" 's/layout->rows = .*/layout->rows = 4000000000;/'
check "too long a durable prefix" stopped durable "durable prefix of 4000 bytes" 's/layout->rows = .*/&layout->durable = 4000;/'
check "a message to itself" stopped itself "sends REQUEST to itself" 's/cv_send(out, coordinator, REQUEST/cv_send(out, 2, REQUEST/; s/^static void compete(.*/&/'
check "a message to nobody" stopped nobody "sends REQUEST to process 0" 's/cv_send(out, coordinator, REQUEST/cv_send(out, 0, REQUEST/'
check "a message to no process" stopped beyond "sends REQUEST to process 99" 's/cv_send(out, coordinator, REQUEST/cv_send(out, 99, REQUEST/'
check "a message of no kind" stopped kind "a message of kind 9" 's/cv_send(out, coordinator, REQUEST/cv_send(out, coordinator, 9/'
check "a body of another message" stopped body "sends REQUEST with a body of" 's/cv_send(out, coordinator, REQUEST, numbered, .number = s->number)/cv_send_raw(out, coordinator, REQUEST, 4)/'
check "a timer that it does not have" stopped timer "uses timer 2" 's/^        s->number++;/&cv_timer(out, 2, 5, 5);/'
check "what a lock does not tell" stopped tells "tells its application" 's/cv_tell(out, CV_ENTERED, 0)/cv_tell(out, CV_ELECTED, 0)/'
check "a process that there is not, in a state" stopped stranger "has process 77 in 'holder'" 's/s->holder = cv_queue_pop.*/s->holder = 77; return;/'
check "a message of a long name" refused longname "a message has no name of 1 to 40" 's/CV_TABLE("GRANT"/CV_TABLE("GRANTGRANTGRANTGRANTGRANTGRANTGRANTGRANTGRANT"/'
check "a name for terminals" refused control "a message has no name of 1 to 40" 's/CV_TABLE("GRANT"/CV_TABLE("GR\\033[31mANT"/'
check "a field with half a letter" refused halfletter "field 1 of the head of" 's/F(R, u64, number, SHOWN)/F(R, u64, number, SHOWN)/; s/CV_TABLE("GRANT", numbered)/{"GRANT", (struct cv_field[]){{"\\303", 0, CV_U64, 0, 0}}, 0, 1, 8, 0, 0}/'
check "a timer of no time" stopped notime "sets timer 0 to a time from 0 to 0" 's/^        s->number++;/&cv_timer(out, 0, 0, 0);/; s/^    CV_MACHINE,/&.timers = 1,/'
check "a timer that ends before it begins" stopped backtime "sets timer 0 to a time from 5 to 4" 's/^        s->number++;/&cv_timer(out, 0, 5, 4);/; s/^    CV_MACHINE,/&.timers = 1,/'
check "a process that enters twice" stopped twice "tells that it has entered, and is inside already" 's/cv_tell(out, CV_ENTERED, 0)/&, &/'
check "what is behind its state" stopped behind "writes outside of its state" "$(at_step '((char *)state)[sizeof(struct state) + (cv_serves(env) ? env->processes * sizeof(struct row) : 0)] = 1')"
check "what is before its state" stopped before "writes outside of its state" "$(at_step '((char *)state)[-1] = 1')"
check "more effects than there is room for" stopped effects "more effects than its" "$(at_step 'out->tells = 200')"
check "bytes that it has not sent" stopped unsent "more effects than its" "$(at_step 'out->used = 4000000000u')"
check "what is constant" stopped constant "changes its 'env'" "$(at_step '((struct cv_env *)env)->processes = 77')"
check "chance" stopped chance "when a step is repeated" "$(at_step 'if (rand() % 2) cv_tell(out, CV_WOKEN, 0)')"
check "variables of the file" stopped global "when a step is repeated" "$(at_step 'static int steps; if (steps++ % 2) cv_tell(out, CV_WOKEN, 0)')"
check "a crash of its code" dies wild "in a step of process 1 it crashes" 139 "$(at_step '*(volatile int *)8 = 1')"
check "a crash in another thread" dies_in_thread wild "in a step of process 1 it crashes" 139
check "a division by zero" dies divided "crashes: it divides by zero" 136 "$(at_step 'raise(SIGFPE)');s/^#include <conclave/#include <signal.h>\n&/"
check "a function that calls itself" dies recursion "calls itself for ever" 139 "$(at_step 'volatile char frame[1000]; frame[0] = 1; step(state, env, e, out); frame[1] = 1')"
check "such a function in another thread" dies_in_thread recursion "calls itself for ever" 139
check "an abort" dies aborted "in a step of process 1 it aborts" 134 "$(at_step 'abort()')"
check "an exit" dies exited "in a step of process 1 it calls exit()" 2 "$(at_step 'exit(0)')"
check "a step without an end" dies endless "works for seconds" 2 "$(at_step 'for (volatile int i = 0;; i++)')"
check "such a step in another thread" dies_in_thread endless "works for seconds" 2
check "an exit at the very beginning" dies early "while loaded it calls exit()" 2 '$a__attribute__((constructor)) static void early(void) { exit(0); }'
check "more messages than a step may send" dies flood "broken invariant at .*layout() says" 134 's/^        s->number++;/        for (int i = 0; i < 50; i++) cv_send(out, coordinator, REQUEST, numbered, .number = 1);\n&/'
check "a scenario of one that is not there" scenario_names_none
