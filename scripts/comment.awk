# The opening comment of each source, without its signs: what `conclave explain` shows.
FNR == 1 { inside = /^\/\*/; sub(/^\/\* ?/, "") }
inside {
    if (sub(/ *\*\/.*$/, "")) inside = 0
    sub(/^ \* ?/, "")
    print
}
