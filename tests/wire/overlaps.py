"""Judges what processes wrote about the time that they held a lock: overlaps.py LOG [SLOTS].

A line is KIND BEGIN END TOKEN HELD.  Exclusive ones (x) overlap with nobody, of SLOTS at most so many are inside at
once, and the tokens of exclusive ones grow in the order of their times.  Who says that it lost the lock is left out."""
import sys

slots = int(sys.argv[2]) if len(sys.argv) > 2 else 1
entries = []
with open(sys.argv[1], encoding="ascii") as log:
    for line in log:
        kind, begin, end, token, held = line.split()
        if held == "1":
            entries.append((int(begin), int(end), kind, int(token)))
entries.sort()
inside = []
last = 0
for begin, end, kind, token in entries:
    inside = [other for other in inside if other[0] > begin]
    if kind == "x" and slots == 1 and inside or any(other[1] == "x" for other in inside) and slots == 1:
        sys.exit(f"overlap at {begin}")
    if slots > 1 and len(inside) >= slots:
        sys.exit(f"{len(inside) + 1} inside at {begin}")
    if kind == "x" and slots == 1 and token:
        if token <= last:
            sys.exit(f"token {token} after {last}")
        last = token
    inside.append((end, kind))
print(f"{len(entries)} times inside")
