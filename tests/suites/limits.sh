# Descriptors that run out, a disk that stalls, a client that does not read: other clients do not suffer.
with_processes
for test in $(/usr/bin/python3 tests/wire/limits.py --list); do
    AT_ONCE=6 check_beside "limits: $test" bounded /usr/bin/python3 tests/wire/limits.py "$test"
done
gather
