# The laboratory's texts in Portuguese: nothing is left in English, nothing is out of date, and numbers and names of messages are
# those of the English.

texts() { bounded /usr/bin/python3 tests/language/texts.py "$1" "$CONCLAVE"; }
pt() { bounded "$CONCLAVE" "$@" --lang pt; }
says() { # TEXT COMMAND...
    local text=$1 output
    shift
    output=$("$@" 2>&1)
    [[ $output == *"$text"* ]] || { echo "'$text' is not in: $output"; return 1; }
}

check "each algorithm is explained, and what is explained is what the source says now" texts explanations
check "algorithms, options, scenarios and what is shown of processes have names" texts texts
check "nothing is translated that is not said" texts stale
check "each text of each exercise has its translation" texts exercises
check "an explanation is shown in the language that is asked for" says "n coordenadores, cada um com uma fila" pt explain quorum
check "and in English otherwise" says "n coordinators, each with a queue" bounded env LC_ALL=C "$CONCLAVE" explain quorum
check "an exercise is asked in it" says "Quantas mensagens ELEIÇÃO" pt exercise bully-messages
check "a known mistake is explained in it" says "Só se pergunta aos maiores" pt exercise bully-messages --answer 30
check "a trace has the names of the lecture" says "RequestAccess número=1" pt sim central --entries 1 --trace text
check "and an explanation those of the program, too" says "RequestAccess (REQUEST)" pt explain central
check "JSON is English" says '"the best process that is up takes the lead' pt list --json

# What it must notice, in a copy.
cp -r src po scenarios exercises scripts "$WORK/"
notices() { # CHECK FILE SED-EXPRESSION
    local output
    cp "$WORK/$2" "$WORK/kept"
    sed -i "$3" "$WORK/$2"
    output=$(cd "$WORK" && bounded /usr/bin/python3 "$OLDPWD/tests/language/texts.py" "$1" "$CONCLAVE") && output=
    cp "$WORK/kept" "$WORK/$2"
    [ -n "$output" ] || { echo "nothing was noticed"; return 1; }
}
check "an explanation that has changed is noticed" notices explanations src/algorithms/mutex/lamport.c "s/every process/each process/"
check "another number is noticed" notices explanations po/pt/explain/lamport.txt "s/3(N-1)/4(N-1)/"
check "a message that is not named is noticed" notices explanations po/pt/explain/bully.txt "s/RESPOSTA/algo/"
check "an explanation that is missing is noticed" notices explanations po/pt/explain/bully.txt "2,\$d"
check "a title without its entry is noticed" notices texts po/pt/texts.po "/The holder dies/,+1d"
check "an entry for nothing is noticed" notices stale po/pt/texts.po "s/The holder dies/The holder died/"
check "an exercise's text without its translation is noticed" notices exercises exercises/split-brain.exercise "/^pt Dois/d"
