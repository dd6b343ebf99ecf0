# Where each mutant is: finds the file and the function that it names, wherever they have moved to.
#
#   awk -f resolve.awk SOURCE... LIST...
# prints NAME, PATH, FIRST,LAST (the lines of the function, or all), EDIT and HOW, parted by tabs, and to stderr what cannot
# be found; the exit status says whether that was anything.

function complain(what) { printf "%s:%d: %s: %s\n", FILENAME, FNR, $1, what >"/dev/stderr"; wrong = 1 }

# named(path, name): the path ends in this name, which is a file's own name or has some folders before it.
function named(path, name) { return path == name || substr(path, length(path) - length(name)) == "/" name }

# found(name, function): the one file of this name that has this function.
function found(name, function_,    path, at) {
    if ((name, function_) in known) return known[name, function_]
    for (path in is_source)
        if (named(path, name) && (function_ == "-" || (path, function_) in range)) at = at ? "several" : path
    return known[name, function_] = at
}

BEGIN { FS = "\t" }
FNR == 1 { inside = begun = ""; is_list = FILENAME ~ /\.list$/; if (!is_list) is_source[FILENAME] = 1 }

is_list {
    if (NF != 5 || !$1 || !$2 || !$3 || !$4 || !$5) { complain("not five columns"); next }
    path = found($2, $3)
    if (!path) { complain($3 == "-" ? "there is no " $2 : "there is no function " $3 " in a file " $2); next }
    if (path == "several") { complain("there are several " $2 ($3 == "-" ? "" : " with a function " $3)); next }
    lines = $3 == "-" ? "1,$" : range[path, $3]
    printf "%s\t%s\t%s\t%s\t%s\n", $1, path, lines, $4, $5
    next
}

# A definition begins in the first column and has its brace before any semicolon; it ends with a brace in the first column.
inside { if (/^}/) { range[FILENAME, inside] = first "," FNR; inside = "" } next }
!begun && /^[A-Za-z_].*[A-Za-z0-9_]\(/ {
    begun = $0
    gsub(/__attribute__\(\([^)]*\)*\)/, "", begun)
    sub(/\(.*/, "", begun)
    sub(/.*[^A-Za-z0-9_]/, "", begun)
    first = FNR
}
begun && /[{;]/ {
    if (/^[^{]*;/) begun = ""
    else if (/}$/) { range[FILENAME, begun] = first "," FNR; begun = "" }
    else { inside = begun; begun = "" }
}
END { exit wrong }
