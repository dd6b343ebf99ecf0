# Writes the table of translations: the entries of the po files that are given, by the bytes of their msgid.  An entry without a
# msgstr, one that is marked fuzzy, and the header have none.
function part(line) { sub(/^[a-z]* *"/, "", line); sub(/"[ \t]*$/, "", line); return line }
function finish() {
    if (id != "" && text != "" && !fuzzy) {
        if (id in row && row[id] != text) { print "two translations of: " id >"/dev/stderr"; failed = 1 }
        if (!(id in row)) order[++count] = id
        row[id] = text
    }
    id = text = ""
    state = fuzzy = 0
}
FNR == 1 || /^[ \t]*$/ { finish() }
/^#,.*fuzzy/ { fuzzy = 1 }
/^#/ || /^[ \t]*$/ { next }
/^msgid "/ { if (state) finish(); state = 1; id = part($0); next }
/^msgstr "/ { state = 2; text = part($0); next }
/^"/ { if (state == 1) id = id part($0); else if (state == 2) text = text part($0); next }
{ print FILENAME ":" FNR ": neither msgid nor msgstr: " $0 >"/dev/stderr"; failed = 1 }

# What C compares: escapes stand for one byte each, below every letter.
function bytes(text) { gsub(/\\n/, "\n", text); gsub(/\\"/, "\"", text); gsub(/\\\\/, "\\", text); return text }
function sift(from, size,    child, kept) { # the greatest goes to the top
    for (kept = order[from]; (child = 2 * from) <= size; from = child) {
        if (child < size && key[order[child + 1]] > key[order[child]]) child++
        if (key[kept] >= key[order[child]]) break
        order[from] = order[child]
    }
    order[from] = kept
}
END {
    finish()
    if (failed) exit 1
    for (i = 1; i <= count; i++) key[order[i]] = bytes(order[i]) ""
    for (i = int(count / 2); i >= 1; i--) sift(i, count)
    for (i = count; i > 1; i--) {
        swap = order[1]; order[1] = order[i]; order[i] = swap
        sift(1, i - 1)
    }
    print "/* Made by scripts/messages.awk. */"
    print "#include \"language/language.h\"\n"
    print "const struct translation portuguese[] = {"
    for (i = 1; i <= count; i++) print "    {\"" order[i] "\",\n     \"" row[order[i]] "\"},"
    print "};"
    print "const size_t portuguese_count = sizeof portuguese / sizeof portuguese[0];"
}
