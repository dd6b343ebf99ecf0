# Writes the catalogue: what CV_ALGORITHM(NAME) names in the sources, in their order.
FNR == 1 { finish(); file = FILENAME; found = 0 }
match($0, /^CV_ALGORITHM\([a-z0-9_]+\)/) {
    name = "cv_" substr($0, RSTART + 13, RLENGTH - 14)
    declared = declared "extern const struct cv_algorithm " name ";\n"
    listed = listed "    &" name ",\n"
    found = 1
}
function finish() {
    if (file == "" || found) return
    print file ": it has no CV_ALGORITHM(NAME) = {...}" >"/dev/stderr"
    failed = 1
}
END {
    finish()
    if (failed) exit 1
    print "/* Made by scripts/roll.awk. */"
    print "#include \"algorithms/catalogue.h\"\n"
    print declared
    print "const struct cv_algorithm *const catalogue[] = {\n" listed "};"
    print "const size_t catalogue_count = sizeof catalogue / sizeof catalogue[0];"
}
