# What is packaged besides the program: the configuration, the unit, and how Kubernetes starts servers.  The Debian
# package itself is tested by `make test-deb`.
with_processes

# Each key that the packaged configuration names, in comments or not, is one that the server knows.
every_key_is_known() {
    local said
    sed -nE 's/^(# )?([A-Za-z0-9.]+=.*)/\2/p' packaging/debian/zoo.cfg >"$WORK/all.cfg"
    [ "$(wc -l <"$WORK/all.cfg")" -gt 15 ] || return 1
    said=$("$CONCLAVE" serve --config "$WORK/all.cfg" --set clientPort=none 2>&1) # which ends it
    [[ $said == *clientPort* && $(wc -l <<<"$said") -eq 1 ]] || { echo "$said"; return 1; }
}

# ... and nothing but loopback addresses is listened on unless somebody changes that.
loopback_only() {
    ! grep -E '^(listen|clientPort|server|secure)' packaging/debian/zoo.cfg | grep -v '=127\.0\.0\.1:'
}

versions_agree() {
    local version
    version=$("$CONCLAVE" --version | cut -d' ' -f2)
    grep -q "^conclave ($version-1)" packaging/debian/changelog && grep -q "^## \[$version\]" CHANGELOG.md &&
        grep -q "image: conclave:$version\$" contrib/kubernetes/statefulset.yaml
}

# Examples can be pasted from a help: no line of them is wrapped, except after a backslash.
examples_are_whole() {
    local command bad=0
    for command in $("$CONCLAVE" --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
        "$CONCLAVE" "$command" --help | awk '
            length > 100 { print "too long: " $0; bad = 1 }
            /^Examples[:,]/ { on = 1; next }
            /^$/ { on = 0 }
            on && !continued && !/^  (.*conclave |\{)/ { print "wrapped: " $0; bad = 1 }
            on { continued = /\\$/; examples++ }
            END { if (!examples) print "no example"; exit bad || !examples }' || { echo "in the help of $command"; bad=1; }
    done
    return $bad
}

# As systemd rates it: 0 is no exposure, 10 is all.
unit_is_hardened() {
    sed 's|@PREFIX@|/usr|; s|@ARGUMENTS@||; s|@USER@|User=conclave|' packaging/conclave.service >"$WORK/conclave.service"
    systemd-analyze security --offline=true --no-pager --threshold=12 "$WORK/conclave.service" &&
        grep -q '^MemoryMax=' "$WORK/conclave.service"
}

shell_is_sound() { bash -n packaging/completion && bash -n packaging/build-deb && bash -n packaging/test-deb &&
    for script in packaging/debian/*.p{ostinst,rerm,ostrm}; do sh -n "$script" || return 1; done; }

# ---- Kubernetes ----

# yaml EXPRESSION: of `documents`, what the file holds, by kind.
yaml() {
    /usr/bin/python3 -c '
import sys, yaml
documents = {d["kind"] + "/" + d["metadata"]["name"]: d for d in yaml.safe_load_all(open("contrib/kubernetes/statefulset.yaml"))}
servers = documents["StatefulSet/conclave"]["spec"]
pod = servers["template"]["spec"]
container = pod["containers"][0]
print(eval(sys.argv[1]))' "$1"
}

yaml_is_sound() {
    [ "$(yaml 'len(documents)')" = 4 ] &&
        [ "$(yaml 'servers["serviceName"] in [d["metadata"]["name"] for d in documents.values() if d["kind"] == "Service"]')" = True ] &&
        [ "$(yaml '{m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"] + [c["metadata"] for c in servers["volumeClaimTemplates"]]}')" = True ] &&
        [ "$(yaml 'all(d["spec"]["selector"].get("matchLabels", d["spec"]["selector"]) == servers["template"]["metadata"]["labels"] for d in documents.values())')" = True ]
}

start_pod() { # ORDINAL
    mkdir -p "$WORK/run$1"
    PATH=$WORK/bin:$PATH ORDINAL=$1 SERVERS=3 KEY=$WORK/secret RUN=$WORK/run$1 DATA=$WORK/data$1 \
        sh -euc "$(cat "$WORK/script")" >"$WORK/pod$1" 2>&1 </dev/null &
    pods+=($!)
}

# The script of the pods, three times on this machine.  `conclave` and `hostname` stand before the real ones: names
# become loopback addresses, ports free ones.
start_pods() {
    local ordinal
    mkdir -p "$WORK/bin"
    export BASE
    BASE=$(/usr/bin/python3 tests/wire/places.py 20 anywhere)
    cat >"$WORK/bin/hostname" <<'EOF'
#!/bin/sh
echo "conclave-$ORDINAL.conclave.test"
EOF
    cat >"$WORK/bin/conclave" <<'EOF'
#!/usr/bin/env bash
http=127.0.0.1:$((BASE + 10 + ORDINAL))
[ "$1" = serve ] || exec "$CONCLAVE" "$@" --at "$http"
printf '%s\n' "$@" >"$RUN/arguments"
for i in 0 1 2 3; do set -- "${@//conclave-$i.conclave.test:2888/127.0.0.1:$((BASE + i))}"; done
set -- "${@/#'*:2181'/127.0.0.1:0}" --http "$http"
exec "$CONCLAVE" "$@"
EOF
    chmod +x "$WORK/bin/"*
    echo "a secret of more than 16 bytes" >"$WORK/secret"
    chmod 440 "$WORK/secret"
    yaml 'container["args"][0]' >"$WORK/script"
    pods=()
    for ordinal in 0 1 2; do start_pod "$ordinal"; done
    trap 'kill "${pods[@]}" 2>/dev/null; wait' EXIT
}

# probe NAME ORDINAL: a probe of the container, as it is written.
probe() {
    local -a command
    mapfile -t command < <(yaml "'\\n'.join(container['$1']['exec']['command'])")
    PATH=$WORK/bin:$PATH ORDINAL=$2 bounded "${command[@]}"
}

is_gone() { ! kill -0 "${pods[$1]}" 2>/dev/null; } # ORDINAL
ready_or_gone() { probe readinessProbe "$1" || is_gone "$1"; }
not_ready() { ! probe readinessProbe "$1"; }

# are_ready ORDINAL...
are_ready() {
    local ordinal
    for ordinal; do
        await ready_or_gone "$ordinal" || return
        ! is_gone "$ordinal" || { cat "$WORK/pod$ordinal"; return 1; }
        probe startupProbe "$ordinal" && probe livenessProbe "$ordinal" || return 1
    done
}

arguments_are_right() {
    diff - "$WORK/run1/arguments" <<EOF
serve
--id
2
--ensemble
1=conclave-0.conclave.test:2888,2=conclave-1.conclave.test:2888,3=conclave-2.conclave.test:2888
--peer-key
$WORK/run1/key
--listen
*:2181
--data
$WORK/data1
EOF
}

fourth_is_added() {
    "$CONCLAVE" ensemble add "4=127.0.0.1:$((BASE + 3))" --data "$WORK/data0" --timeout "${PATIENCE}s" && are_ready 3 &&
        "$CONCLAVE" ensemble remove 4 --data "$WORK/data0" --timeout "${PATIENCE}s"
}

# ends_when_told ORDINAL: the signal reaches the server, which takes the place of the pod's shell.
ends_when_told() {
    kill "${pods[$1]}" || return 1
    await is_gone "$1"
}

lives_without_majority() {
    ends_when_told 1 && await not_ready 0 && probe livenessProbe 0
}

check "examples in helps are not wrapped" examples_are_whole
check "the packaged configuration has no key that the server does not know" every_key_is_known
check "and serves this machine only" loopback_only
check "all say the same version" versions_agree
check "systemd rates the exposure of the unit 1.2 or less" unit_is_hardened
check "the scripts can be read by their shells" shell_is_sound
check "statefulset.yaml can be read, and refers to what is in it" yaml_is_sound
start_pods
check "three pods become an ensemble, and their probes say so" are_ready 0 1 2
check "each is told its number and all names" arguments_are_right
check "the key is for its owner only" test "$(stat -c %a "$WORK/run0/key")" = 600
start_pod 3
check "a fourth joins when it is added, and can be removed" fourth_is_added
check "a pod ends when it is told to" ends_when_told 2
check "without a majority a server is not ready, but alive" lives_without_majority
