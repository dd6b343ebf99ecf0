# docs/NOTES.md: every command that it shows prints what it says there.
with_processes
trap 'kill -9 "$PID" 2>/dev/null' EXIT

rows() { grep -E '^\| [^|]* \| `conclave [^`]*` \| (`[^`]*` )?\|$' "$1"; }
# Tables with what is not such a row would be left out in silence.
all_are_rows() { [ "$(grep -c '^| ' "$1")" -eq $(($(rows "$1" | wc -l) + $(grep -c '^| the notes say' "$1"))) ]; }
shown() { # COMMAND TEXT
    local command=$1 output status
    output=$(bounded bash -c "$command" 2>&1)
    status=$?
    [ "$status" -le 2 ] || { echo "exit status $status: $output"; return 1; }
    output=$(tr -s ' \n' ' ' <<<"$output")
    [[ $output == *"$2"* ]] || { echo "'$2' is not in: $output"; return 1; }
}
serves() { CONCLAVE_SERVER=$(sed -n 's/^conclave: serving clients on \([0-9.:]*\).*/\1/p' "$WORK/serve.out"); [ -n "$CONCLAVE_SERVER" ]; }

conclave() { "$CONCLAVE" "$@"; }
export -f conclave
export CONCLAVE CONCLAVE_SERVER LC_ALL=C
check "every line of its tables is a command" all_are_rows docs/NOTES.md
"$CONCLAVE" serve --data "$WORK/data" --listen 127.0.0.1:0 --set admin.enableServer=false >"$WORK/serve.out" 2>&1 </dev/null &
PID=$!
check_first "a server" await serves
serves
while IFS= read -r row; do
    IFS='|' read -r _ what command text _ <<<"$row"
    command=${command# \`} text=${text# } text=${text#\`} what=${what# }
    check "${what% }" shown "${command%\` }" "${text%\` }"
done < <(rows docs/NOTES.md)
