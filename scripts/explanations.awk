# Writes the table of `conclave explain`: the opening comment of each algorithm's source, under each
# name in that source, and the scenarios by algorithm.  The comment is the one place where an
# algorithm is explained.  po/pt/explain/SOURCE.txt has the same in Portuguese, after a line that
# tells which English text that is.
function quoted(text) { gsub(/\\/, "&&", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
function quoted_line(text) { text = quoted(text); return "\n    " substr(text, 1, length(text) - 1) "\\n\"" }
FNR == 1 {
    inside = 0
    title = ""
    source = FILENAME
    sub(/^.*\//, "", source)
    sub(/\.[a-z]+$/, "", source)
}
FILENAME ~ /\.c$/ {
    if (FNR == 1 && /^\/\*/) { inside = 1; sub(/^\/\* ?/, "") }
    if (inside) {
        if (sub(/ *\*\/.*$/, "")) inside = 0
        sub(/^ \* ?/, "")
        english[source] = english[source] quoted_line($0)
        next
    }
    if (match($0, /\.name = "[a-z-]+"/)) {
        name[++count] = substr($0, RSTART + 8, RLENGTH - 8)
        from[count] = source
    }
}
FILENAME ~ /\.txt$/ && FNR > 1 { portuguese[source] = portuguese[source] quoted_line($0) }
FILENAME ~ /\.scenario$/ {
    if ($1 == "title") { title = $0; sub(/^title +/, "", title) }
    if ($1 == "algorithm")
        scenarios = scenarios "    {" quoted($2) ", " quoted(FILENAME) ", " quoted(title) "},\n"
}
END {
    print "/* Made by scripts/explanations.awk. */"
    print "#include \"cli/explanations.h\"\n"
    print "const struct explanation explanations[] = {"
    for (i = 1; i <= count; i++)
        print "    {" name[i] "," english[from[i]] "," (from[i] in portuguese ? portuguese[from[i]] : " 0") "},"
    print "    {0}};"
    print "const struct shipped_scenario shipped_scenarios[] = {\n" scenarios "    {0}};"
}
