# Writes the table of `conclave museum` from museum/*.exhibit, whose format docs/MUSEUM.md describes: a word and the rest of its
# line, or a word and indented lines.
function quoted(text) { gsub(/\\/, "\\\\&", text); gsub(/"/, "\\\"", text); gsub(/\n/, "\\n\"\n     \"", text); return "\"" text "\"" }
function wrong(what) { print FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }
function close_exhibit(  i) {
    if (name == "") return
    for (i = 1; i <= needed; i++) if (text[need[i]] == "") wrong(name ": there is no '" need[i] "'")
    if ((text["edit"] == "") == (text["sound"] == "")) wrong(name ": it has an edit, or else a sound command")
    print "    {"
    print "     " quoted(name) ","
    for (i = 1; i <= words; i++) print "     " quoted(text[word[i]]) ","
    print "    },"
}
BEGIN {
    words = split("title room reference story file edit run sound says mended page", word)
    needed = split("title room reference story run says mended", need)
    for (i = 1; i <= words; i++) known[word[i]] = 1
    print "/* Made by scripts/museum.awk. */"
    print "#include \"cli/museum.h\"\n"
    print "const struct exhibit exhibits[] = {"
}
FNR == 1 {
    close_exhibit()
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.exhibit$/, "", name)
    split("", text)
}
/^#/ || /^ *$/ { next }
/^ / {
    sub(/^ +/, "")
    text[last] = text[last] (text[last] == "" ? "" : "\n") $0
    next
}
{
    last = $1
    if (!(last in known)) wrong("unknown word '" last "'")
    if (text[last] != "") wrong(last ": there is one already")
    sub(/^[a-z]+ */, "")
    text[last] = $0
}
END {
    if (!failed) close_exhibit()
    print "    {0}};"
    exit failed
}
