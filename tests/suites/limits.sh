# What a server runs out of, or waits for, is not its clients' loss.
for test in $(/usr/bin/python3 tests/wire/limits.py --list); do
    check "limits: $test" timeout 90 /usr/bin/python3 tests/wire/limits.py "$test"
done
