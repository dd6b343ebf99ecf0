# Writes what the laboratory's page has to read as a JavaScript module: the scenarios by their names, the sources of the
# algorithms by their files, without the opening comment, which `conclave explain` prints, and what algorithms, options and
# scenarios are called in Portuguese.
#   awk -f scripts/library.awk scenarios/*.scenario src/algorithms/mutex/*.c po/pt/texts.po
function quoted(text) { return "\"" escaped(text) "\"" }
function escaped(text) {
    gsub(/\\/, "\\\\&", text)
    gsub(/"/, "\\\"", text)
    gsub(/\t/, "\\t", text)
    return text
}
function close_file() { if (open) print "\","; open = 0 }
function part(line) { sub(/^[a-z]* *"/, "", line); sub(/"[ \t]*$/, "", line); return line }
function close_entry() { if (id != "" && text != "") printf "\"%s\": \"%s\",\n", id, text; id = text = "" }
function section(name) { close_file(); if (now != "") print "};"; now = name; print "export const " name " = {" }
BEGIN { print "/* Made by scripts/library.awk. */" }
FNR == 1 {
    kind = FILENAME ~ /\.scenario$/ ? "scenarios" : FILENAME ~ /\.po$/ ? "inPortuguese" : "sources"
    if (kind != now) section(kind)
}
kind == "inPortuguese" { # strings of C that are strings of JavaScript, too
    if (/^msgid /) { close_entry(); id = part($0); of_id = 1 }
    else if (/^msgstr /) { text = part($0); of_id = 0 }
    else if (/^"/ && of_id) id = id part($0)
    else if (/^"/) text = text part($0)
    next
}
FNR == 1 {
    close_file()
    name = FILENAME
    if (kind == "scenarios") { sub(/.*\//, "", name); sub(/\.scenario$/, "", name) }
    printf "%s: \"", quoted(name)
    open = 1
    comment = kind == "sources" && /^\/\*/
}
comment { if (/\*\//) comment = 0; next }
{ printf "%s\\n", escaped($0) }
END { close_file(); close_entry(); if (now != "") print "};" }
