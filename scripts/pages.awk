# Writes a table (-v table=NAME) of the files that are named as arguments, whose bytes the assembler
# includes.
BEGIN {
    types["html"] = "text/html; charset=utf-8"
    types["css"] = "text/css; charset=utf-8"
    types["js"] = "text/javascript; charset=utf-8"
    types["json"] = "application/json"
    types["svg"] = "image/svg+xml"
    types["wasm"] = "application/wasm"
    print "/* Made by scripts/pages.awk. */"
    print "#include \"base/asset.h\"\n"
    print "#include <stddef.h>\n"
    print "extern const struct asset " table "[];"
    for (i = 1; i < ARGC; i++) {
        name = ARGV[i]
        sub(/.*\//, "", name)
        packed = sub(/\.gz$/, "", name)
        type = name
        sub(/.*\./, "", type)
        if (!(type in types)) {
            print ARGV[i] ": what type of content is this?" >"/dev/stderr"
            exit 1
        }
        printf "__asm__(\".pushsection .rodata\\n\"\n        \"page_%d: .incbin \\\"%s\\\"\\n\"\n", i, ARGV[i]
        printf "        \"page_end_%d: .byte 0\\n\"\n        \".popsection\\n\");\n", i
        printf "extern const unsigned char page_%d[], page_end_%d[];\n", i, i
        rows = rows sprintf("    {\"%s\", \"%s\", %s, page_%d, page_end_%d},\n", name, types[type], packed ? "\"gzip\"" : "NULL", i, i)
    }
    print "\nconst struct asset " table "[] = {\n" rows "    {NULL, NULL, NULL, NULL, NULL},\n};"
}
