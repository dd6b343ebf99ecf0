"""Increments a file without atomics under kazoo's lock: kazoo_lock.py SERVER PATH CYCLES DIRECTORY."""
import os
import sys
import time

from kazoo.client import KazooClient

from patience import TIMEOUT_S, judged

server, path, cycles, directory = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
with judged():
    client = KazooClient(hosts=server, timeout=40)
    client.start(timeout=TIMEOUT_S)
    lock = client.Lock(path, "kazoo")
    number = os.path.join(directory, "number")
    for _ in range(cycles):
        with lock:
            begin = time.monotonic_ns() // 1000
            with open(number, encoding="ascii") as file:
                value = int(file.read() or "0")
            with open(number, "w", encoding="ascii") as file:
                file.write(f"{value + 1}\n")
            end = time.monotonic_ns() // 1000
            with open(os.path.join(directory, "log"), "a", encoding="ascii") as file:
                file.write(f"x {begin} {end} 0 1\n")
    client.stop()
    client.close()
