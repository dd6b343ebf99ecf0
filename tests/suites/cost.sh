# What clients can make a server do is bounded by what they send (tests/fuzz/fuzz_cost.c): requests that were costly once,
# and random ones.  RUNS=5000 and SEED=7 for more and others.
if [ -n "${SANITIZED:-}" ]; then
    echo "ok what requests cost is counted in the plain build only"
    exit 0
fi

check "requests that were costly once" bounded "$B/fuzz_cost" tests/fuzz/corpus/cost/*
check "${RUNS:-100} random programs of requests" bounded "$B/fuzz_cost" --runs "${RUNS:-100}" "${SEED:-1}"
