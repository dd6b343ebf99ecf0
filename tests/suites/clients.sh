# Real clients against a running server: kazoo, the C client, ZooKeeper's command line, and one
# for Node.
. tests/wire/server.bash
wire=tests/wire

# each LABEL COMMAND...: every test that COMMAND --list names is a check of its own.
each() {
    local label=$1 name names
    shift
    names=$("$@" --list) || names=
    check "$label: has tests" test -n "$names"
    for name in $names; do check_alone "$label: $name" bounded "$@" "$AT" "$name"; done
}

compile_c_client() {
    gcc -std=gnu17 -Wall -Wextra -Werror -DTHREADED -o "$WORK/c_client" "$wire/c_client.c" \
        -lzookeeper_mt -pthread
}

# The packages stay in the build directory: they are fetched once.
install_node_client() {
    local client=node-zookeeper-client
    [ -d "$B/node/node_modules/$client" ] ||
        npm install --prefix "$B/node" --silent --no-audit --no-fund "$client@1.1.3"
}

start_server --set 4lw.commands.whitelist='*' --set extendedTypesEnabled=true
each kazoo /usr/bin/python3 "$wire/kazoo_basic.py"
each "kazoo's recipes" /usr/bin/python3 "$wire/kazoo_recipes.py"
check "the C client compiles" compile_c_client
each "C client" "$WORK/c_client"
each "command line" "$wire/zkcli"
check "the Node client installs" install_node_client
NODE_PATH=$(realpath "$B")/node/node_modules each "Node client" node "$wire/node_client.js"
stop_server
