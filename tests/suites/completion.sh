# Completion of command lines in bash and zsh.  What is offered is compared with what --usage says, which the
# completions are not made from.
with_processes

packaging/completion bash "$CONCLAVE" >"$WORK/conclave.bash" || exit 1
packaging/completion zsh "$CONCLAVE" >"$WORK/_conclave" || exit 1

commands=$("$CONCLAVE" --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
algorithms=$("$CONCLAVE" list --json | jq -r '.[].algorithm')

# usage COMMAND...: its long options.
usage() { "$CONCLAVE" "$@" --usage | grep -oE '\[--[a-z0-9-]+' | tr -d '[' | sort -u; }

# in_bash WORD...: what bash offers for the last of these words.
in_bash() {
    bash --norc -c '
        compopt() { :; } # there is no command line here
        . "$1"
        shift
        COMP_WORDS=(conclave "$@") COMP_CWORD=$#
        _conclave
        printf "%s\n" "${COMPREPLY[@]}"' bash "$WORK/conclave.bash" "$@" | sort -u
}

# zsh completes in its line editor only, so it gets a terminal: for each line on standard input, what is
# offered at its end goes into a file, $WORK/offered.N.
in_zsh() {
    cat >"$WORK/driver.zsh" <<'EOF'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; fpath=($1 \$fpath); autoload -U compinit; compinit -D -u; integer count
offered() {
    count+=1
    compadd() { local -a found; builtin compadd -O found \"\$@\"; print -rl -- \$found >>$1/offered.\$count }
    _main_complete
    unfunction compadd
    print done-\$count
}
zle -C offered complete-word offered; bindkey '^X' offered; print ready"
zpty -r shell text '*ready*'
integer number
while IFS= read -r typed; do
    number+=1
    : >$1/offered.$number
    zpty -w -n shell $'\C-U'"$typed"$'\C-X'
    zpty -r shell text "*done-$number*"
done
zpty -d shell
EOF
    bounded zsh -f "$WORK/driver.zsh" "$WORK"
}

# expect LINE WORD...: zsh must offer these words, and no others, at the end of the line.
lines=0
expect() {
    lines=$((lines + 1))
    echo "$1" >>"$WORK/lines"
    shift
    printf '%s\n' "$@" | sort -u >"$WORK/expected.$lines"
}

zsh_offers() {
    local i bad=0
    in_zsh <"$WORK/lines" || return 1
    for i in $(seq "$lines"); do
        sort -u "$WORK/offered.$i" | grep . | diff "$WORK/expected.$i" - ||
            { echo "after '$(sed -n "${i}p" "$WORK/lines")'"; bad=1; }
    done
    return $bad
}

bash_options() {
    local command algorithm bad=0
    for command in $commands; do
        diff <(usage "$command") <(in_bash "$command" --) || { echo "of $command"; bad=1; }
    done
    for algorithm in quorum bully; do
        [ -z "$(comm -23 <(usage sim "$algorithm") <(in_bash sim "$algorithm" --))" ] || { echo "of sim $algorithm"; bad=1; }
    done
    return $bad
}

bash_values() {
    local directory=$WORK/values
    mkdir -p "$directory/data"
    touch "$directory/a.cfg"
    diff <(printf '%s\n' need none want) <(in_bash serve --tls-clients '') &&
        diff <(echo want) <(in_bash serve --tls-clients = w) &&
        diff <(echo "$directory/data") <(in_bash serve --data "$directory/") &&
        diff <(printf '%s\n' "$directory/a.cfg" "$directory/data") <(in_bash serve --config "$directory/") &&
        diff <(echo "$algorithms" | sort) <(in_bash explain '') &&
        diff <(printf '%s\n' add remove status transfer weight) <(in_bash ensemble '') &&
        diff <(echo) <(in_bash serve --id '') &&
        diff <(echo) <(in_bash nothing --)
}

expect 'conclave ' $commands --help --version
# shellcheck disable=SC2046 # one word for each option
for command in $commands; do expect "conclave $command --" $(usage "$command"); done
expect 'conclave explain ' $algorithms
expect 'conclave serve --tls-clients ' none want need
expect 'conclave ensemble ' status add remove weight transfer

check "bash offers every command" diff <(printf '%s\n' $commands --help --version | sort) <(in_bash '')
check "bash offers every option of every command, and no other" bash_options
check "bash offers values: words, files, directories, algorithms" bash_values
check "zsh offers the same" zsh_offers
