# An ensemble is upgraded, server by server, from the program before version 3 of the protocol between servers.  That
# program is built from the project's own history, once, and kept in $B/before.
. tests/net/each.bash

# The last commit whose servers speak version 2 of the protocol only.  It stays for as long as version 2 is spoken:
# see LINK_VERSION_OLDEST.
before_commit=a84d4ec1000901581366a05e57b07a381ca3d5d1
case $B in /*) directory=$B/before ;; *) directory=$PWD/$B/before ;; esac
export BEFORE=$directory/conclave-${before_commit:0:12}

build_before() {
    local source=$WORK/before
    mkdir -p "$source" "$directory" &&
        git archive "$before_commit" Makefile src scripts scenarios | tar -x -C "$source" &&
        MAKEFLAGS='' make -s -C "$source" -j"$(nproc)" B=build LTO= SANITIZE= CFLAGS="-O0 -w" build/conclave &&
        mv "$source/build/conclave" "$BEFORE" &&
        rm -rf "$source"
}

if [ -x "$BEFORE" ] || git cat-file -e "$before_commit^{commit}" 2>/dev/null; then
    [ -x "$BEFORE" ] || check "the program of version 2 is built" build_before
    [ "$FAILURES" -eq 0 ] && each_of upgrade
else
    skip "no commit ${before_commit:0:12} here (a tarball or a shallow clone?), so upgrades from version 2 were not checked"
fi
