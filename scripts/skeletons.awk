# Writes the table of `conclave new`: the files of examples/own as they are, by name.
function quoted(text) { gsub(/\\/, "&&", text); gsub(/"/, "\\\"", text); return "\"" text "\\n\"" }
FNR == 1 {
    name = FILENAME
    sub(/^.*\//, "", name)
    table = table (NR == 1 ? "" : "},\n") "    {\"" name "\","
}
{ table = table "\n     " quoted($0) }
END {
    print "/* Made by scripts/skeletons.awk. */"
    print "#include \"cli/skeletons.h\"\n"
    print "const struct skeleton skeletons[] = {\n" table "},\n    {0}};"
}
