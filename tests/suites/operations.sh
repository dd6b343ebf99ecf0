# What operators are given: the page docs/OPERATIONS.md, alert rules and a dashboard.  REGENERATE=1 writes the tables of
# that page.
. tests/wire/server.bash
page=docs/OPERATIONS.md

# Rows of a table: name, kind and meaning of each metric, and what a refusal's reason means.
metrics_table() {
    printf '| metric | kind | meaning |\n| --- | --- | --- |\n'
    awk '/^# HELP / { name = $3; help = $0; sub(/^# HELP [^ ]+ /, "", help) } /^# TYPE / { print "| `" name "` | " $4 " | " help " |" }' "$WORK/metrics"
}
settings_table() {
    printf '| key | values | default | meaning |\n| --- | --- | --- | --- |\n'
    "$CONCLAVE" serve --settings | awk 'NR > 1 && !/ without effect / {
        key = substr($0, 1, 42); values = substr($0, 44, 20); given = substr($0, 65, 15); help = substr($0, 81)
        gsub(/ +$/, "", key); gsub(/ +$/, "", values); gsub(/ +$/, "", given); gsub(/\|/, " or ", values)
        print "| `" key "` | " values " | " given " | " help " |"
    }'
}
refusals_table() {
    printf '| reason | what was refused |\n| --- | --- |\n'
    sed -n 's/^ *R(\([a-z_]*\), *"\(.*\)").*/| `\1` | \2 |/p' src/service/server/server.h
}

# is_current NAME: what is between the marks of that name.
is_current() {
    local begin="<!-- $1: begin -->" end="<!-- $1: end -->"
    "$1_table" >"$WORK/table" || return 1
    [ "$(wc -l <"$WORK/table")" -gt 10 ] || return 1
    if [ -n "${REGENERATE:-}" ]; then
        sed -i -e "/^$begin$/r $WORK/table" -e "/^$begin$/,/^$end$/{/^$begin$/b;/^$end$/b;d}" "$page"
    fi
    diff <(sed -n "/^$begin$/,/^$end$/p" "$page" | sed "1d;\$d") "$WORK/table"
}

# Every metric that rules and panels ask for is one that the server has.
names_in() { /usr/bin/python3 -c '
import json, re, sys, yaml
def of_rules(): return [r["expr"] for g in yaml.safe_load(open("contrib/prometheus/alerts.yml"))["groups"] for r in g["rules"]]
def of_panels(): return [t["expr"] for p in json.load(open("contrib/prometheus/dashboard.json"))["panels"] for t in p.get("targets", [])]
known = set(re.findall(r"^# TYPE (\S+)", open(sys.argv[2]).read(), re.M))
known |= {name + end for name in known for end in ("_bucket", "_sum", "_count")} | {"up"}
count = 0
for expr in {"rules": of_rules, "panels": of_panels}[sys.argv[1]]():
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)|\"[^\"]*\"", " ", expr)
    names = set(re.findall(r"[a-z_]{2,}\b(?! *\()", bare)) - {"and", "or"}
    assert names and names <= known, (expr, names - known)
    count += 1
assert count > 10, count' "$1" "$WORK/metrics"; }

# Panels have queries that Prometheus understands, with an interval in the place of a variable.
panels_are_sound() {
    jq -r '[.panels[].targets[]?.expr] | map(gsub("\\$__rate_interval"; "5m")) | to_entries |
        {groups: [{name: "panels", rules: map({record: "panel\(.key)", expr: .value})}]}' \
        contrib/prometheus/dashboard.json >"$WORK/panels.yml" && promtool check rules "$WORK/panels.yml"
}

# What an alert refers to is a section of the page.
sections_exist() {
    local section
    sed -n 's/^ *section: //p' contrib/prometheus/alerts.yml | sort -u | while read -r section; do
        grep -qix "### $section" "$page" || { echo "no section: $section"; exit 1; }
    done
}

start_server --http 127.0.0.1:0
HTTP=$(sed -n 's/.*; HTTP on \([0-9.:]*\).*/\1/p' "$WORK/server.out")
curl -sf "http://$HTTP/metrics" >"$WORK/metrics"
check "the page has every metric, with its meaning" is_current metrics
check "... and every reason to refuse" is_current refusals
check "... and every setting" is_current settings
check "Prometheus can read the metrics" bash -c 'promtool check metrics <"$1" 2>&1 | grep -v "should\|no help" | grep . && exit 1; [ "${PIPESTATUS[0]}" -le 3 ]' - "$WORK/metrics"
stop_server
check "alert rules" promtool check rules contrib/prometheus/alerts.yml
check "... and what they say" promtool test rules contrib/prometheus/alerts_test.yml
check "... ask for metrics that exist" names_in rules
check "... and refer to sections that exist" sections_exist
check "panels ask for metrics that exist" names_in panels
check "... in queries that Prometheus understands" panels_are_sound
