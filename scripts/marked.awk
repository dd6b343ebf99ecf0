# The texts that the sources mark with _("...") or N_("..."), one a line, as they are written: with their escapes, and in one piece.
FNR == 1 { finish() }
{
    if ($0 ~ /^#define N_/) next
    for (rest = $0; rest != "";) {
        if (open) { # a literal may continue that of the line above
            if (match(rest, /^[ \t]*"([^"\\]|\\.)*"/)) {
                literal = substr(rest, 1, RLENGTH)
                sub(/^[ \t]*"/, "", literal)
                text = text substr(literal, 1, length(literal) - 1)
                rest = substr(rest, RLENGTH + 1)
                continue
            }
            if (rest ~ /^[ \t]*$/) break
            finish()
        }
        if (!match(rest, /(^|[^A-Za-z0-9_])N?_\("/)) break
        rest = substr(rest, RSTART + RLENGTH - 1)
        open = 1
    }
}
function finish() {
    if (open && text != "") print text
    open = 0
    text = ""
}
END { finish() }
