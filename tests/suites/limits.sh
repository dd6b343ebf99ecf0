# Descriptors that run out, a disk that stalls, a client that does not read: other clients do not suffer.
for test in $(/usr/bin/python3 tests/wire/limits.py --list); do
    check "limits: $test" bounded /usr/bin/python3 tests/wire/limits.py "$test"
done
