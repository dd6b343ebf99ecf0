# The laboratory in Portuguese: how it is asked for, that nothing is left in English, and that what programs read is the same.

marked() { LC_ALL=C.UTF-8 awk -f scripts/marked.awk src/*/*.[ch] src/*/*/*.[ch] | LC_ALL=C sort -u; }
entries() { sed -n 's/^msgid "\(..*\)"$/\1/p' "$1" | LC_ALL=C sort -u; }
all_is_translated() { # what is marked in the sources and po/pt/reports.po are the same
    diff <(marked) <(entries po/pt/reports.po) | awk '
        $1 == "<" {print "not translated: " substr($0, 3); bad = 1}
        $1 == ">" {print "translated, but nothing says it: " substr($0, 3); bad = 1}
        END {exit bad}'
}
continued() { # a text of several lines is one
    printf '%s\n' 'puts(_("one "' '       "and two"), N_("three"), x_("no"));' >"$WORK/marked.c"
    [ "$(awk -f scripts/marked.awk "$WORK/marked.c")" = "one and two"$'\n'"three" ]
}
table_refuses() { # TEXT: of a po file
    printf '%s\n' "$@" >"$WORK/bad.po"
    ! LC_ALL=C awk -f scripts/messages.awk "$WORK/bad.po" >/dev/null 2>"$WORK/why" && [ -s "$WORK/why" ]
}
spoken() { bounded /usr/bin/python3 tests/language/spoken.py "$CONCLAVE" "$@"; }
check "each text that the sources mark has a translation, and no other" all_is_translated
check "a marked text may go on in the next line" continued
check "two translations of one text are refused" table_refuses 'msgid "a"' 'msgstr "b"' '' 'msgid "a"' 'msgstr "c"'
check "what is neither is refused" table_refuses 'msgid "a"' 'msgstr "b"' 'nonsense'
check "no command says anything in English" spoken
check "that check can fail" exits 1 spoken en 30

# ---- How it is asked for ----

first_line() { bounded "$@" 2>&1 | head -1; }
english='central: 2 processes and 1 coordinator, seed 1'
portuguese='central: 2 processos e 1 coordenador, semente 1'
run=(sim central --processes 2 --entries 2)
is() { [ "$(first_line "${@:2}")" = "$1" ] || { first_line "${@:2}"; return 1; }; }
check "by an option" is "$portuguese" "$CONCLAVE" "${run[@]}" --lang pt
check "by a locale as an option" is "$portuguese" "$CONCLAVE" "${run[@]}" --lang=pt_BR.UTF-8
check "by LANG" is "$portuguese" env -u LC_ALL -u LC_MESSAGES LANG=pt_BR.UTF-8 "$CONCLAVE" "${run[@]}"
check "by LC_MESSAGES, before LANG" is "$portuguese" env -u LC_ALL LC_MESSAGES=pt_PT LANG=C "$CONCLAVE" "${run[@]}"
check "by LC_ALL, before both" is "$english" env LC_ALL=C LC_MESSAGES=pt_PT LANG=pt_PT "$CONCLAVE" "${run[@]}"
check "the option is stronger" is "$english" env LC_ALL=pt_PT "$CONCLAVE" "${run[@]}" --lang en
check "a language that is not there is refused" says "lang: 'eo' is not en or pt" 2 "$CONCLAVE" "${run[@]}" --lang eo
check "commands of the service have no such option" exits 2 bounded "$CONCLAVE" get /a --lang pt
messages_of_the_notes() { bounded "$CONCLAVE" sim bully --processes 3 --trace mermaid --lang pt 2>&1 | grep 'ELEIÇÃO' >/dev/null; }
check "messages have the names of the notes" messages_of_the_notes

# ---- Sentences and columns ----

pt() { bounded "$CONCLAVE" "$@" --lang pt; }
contains() { # TEXT COMMAND...
    local output
    output=$("${@:2}" 2>&1)
    [[ $output == *"$1"* ]] || { echo "'$1' is not in: $output"; return 1; }
}
rows() { # COUNT PATTERN COMMAND...: so many lines are like that, in characters
    [ "$(pt "${@:3}" | LC_ALL=C.UTF-8 grep -cE "$2")" = "$1" ] || { pt "${@:3}"; return 1; }
}
check "a property is a noun of the notes" contains 'Um contraexemplo para a ausência de deadlocks,' pt check maekawa --processes 3 --plain
check "names of properties and verdicts are columns" rows 9 '^.{34}(mantida|desconhecida)' sim raft --time-limit 1s
check "formulas with accents fill their columns" rows 4 '^.{114}[0-9]  ' compare central central-elected --processes 3
check "footnotes name messages as traces do" contains 'e mais 0 ResponseOK' pt compare maekawa --processes 3
check "what an exercise finds wrong" contains 'Errado: exclusão mútua: violada, e deveria ser mantida.' pt exercise mend-ties --answer exercises/mend-ties.c
check "what to type to replay a run is Portuguese" contains ' --lease 20ms --lang pt' pt sim central-lease --pause-rate 1/s --lease 20ms --entries 1000
check "what to type after an exercise, too" contains '--entries 20 --lang pt' pt exercise central-messages --solution
check "and in English nothing is added" exits 1 contains '--lang' bounded env LC_ALL=C "$CONCLAVE" exercise central-messages --solution

# ---- What programs read ----

same() { # COMMAND...: what it prints is the same in both languages, except for how long it took
    diff <(LC_ALL=C bounded "$CONCLAVE" "$@" 2>/dev/null | grep -v '"seconds"') \
        <(LC_ALL=pt_BR.UTF-8 bounded "$CONCLAVE" "$@" --lang pt 2>/dev/null | grep -v '"seconds"') &&
        [ -n "$(bounded "$CONCLAVE" "$@" 2>/dev/null)" ]
}
violated=(check central-lease --processes 2 --late 1 --jobs 1)
check "the JSON of a run is the same" same sim --scenario scenarios/quorum-amnesia.scenario --json
check "of many" same sim voting --entries 20 --runs 5 --json
check "of a check, with its reasons" same "${violated[@]}" --json
check "of a trace" same sim bully --processes 3 --trace json
check "of a counterexample's trace" same "${violated[@]}" --trace json
check "of the algorithms" same list --json
check "of an explanation" same explain quorum --json
check "of costs" same compare --processes 3 --json
check "of odds" same odds --table --json
check "of timeouts" same timeout -w 1 -m 10 --delay exponential:20ms --json
same_scenario() {
    LC_ALL=C exits 1 bounded "$CONCLAVE" "${violated[@]}" --save-scenario "$WORK/en.scenario" >/dev/null &&
        exits 1 bounded "$CONCLAVE" "${violated[@]}" --save-scenario "$WORK/pt.scenario" --lang pt >/dev/null &&
        cmp "$WORK/en.scenario" "$WORK/pt.scenario"
}
check "a scenario that is saved is the same" same_scenario
hashes() { bounded "$CONCLAVE" sim --scenario "scenarios/$1.scenario" "${@:2}" 2>&1 | grep -oE '[0-9a-f]{16}'; }
same_hash() { [ -n "$(LC_ALL=C hashes "$1")" ] && [ "$(LC_ALL=C hashes "$1")" = "$(hashes "$1" --lang pt)" ]; }
check "a run is the same run" same_hash bully-004

# ---- Pictures ----

picture() { # FORMAT SCENARIO TEXT: it is drawn, and says that
    bounded "$CONCLAVE" sim --scenario "scenarios/$2.scenario" --trace "$1" --output "$WORK/$1.out" --force --lang pt >/dev/null
    case $1 in svg | graph) xmllint --noout "$WORK/$1.out" || return 1 ;; esac
    grep -qF "$3" "$WORK/$1.out"
}
check "the legend of a diagram" picture svg quorum-amnesia 'dentro com outro'
check "its verdict" picture svg quorum-amnesia 'exclusão mútua violada: Part2 entrou enquanto Part1 estava dentro'
check "its title" picture svg central-dead-coordinator 'O coordenador'
check "a sequence diagram" picture mermaid quorum-amnesia 'voltou e esqueceu tudo'
check "drawings of the network" picture graph yo-yo 'vertedouro'
