# Writes the table behind `conclave explain`: the opening comment of each algorithm's source, under each
# name that the source gives, and the scenarios by algorithm.  The comment is the one place where an
# algorithm is explained.
function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
FNR == 1 { comment = ""; inside = 0; done = 0; title = "" }
FILENAME ~ /\.c$/ {
    if (FNR == 1 && /^\/\*/) { inside = 1; sub(/^\/\* ?/, "") }
    if (inside) {
        if (sub(/ *\*\/.*$/, "")) { inside = 0; done = 1 }
        sub(/^ \* ?/, "")
        comment = comment "\n    " quoted($0 "\\n")
        gsub(/\\\\n"$/, "\\n\"", comment)
        next
    }
    if (match($0, /\.name = "[a-z-]+"/))
        algorithms = algorithms "    {" substr($0, RSTART + 8, RLENGTH - 8) "," comment "},\n"
}
FILENAME ~ /\.scenario$/ {
    if ($1 == "title") { title = $0; sub(/^title +/, "", title) }
    if ($1 == "algorithm")
        scenarios = scenarios "    {" quoted($2) ", " quoted(FILENAME) ", " quoted(title) "},\n"
}
END {
    print "/* Made by scripts/explanations.awk. */"
    print "#include \"cli/explanations.h\"\n"
    print "const struct explanation explanations[] = {\n" algorithms "    {0}};"
    print "const struct shipped_scenario shipped_scenarios[] = {\n" scenarios "    {0}};"
}
