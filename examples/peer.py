#!/usr/bin/env python3
"""A peer from Python, through ctypes: peer.py ALGORITHM PEERS ID TIMES FILE

Counts in a file together with others, as peer_lock.c does.  $LIBCONCLAVE is the library
(libconclave.so.0 otherwise).
"""

import ctypes
import os
import sys

conclave = ctypes.CDLL(os.environ.get("LIBCONCLAVE", "libconclave.so.0"))
conclave.cv_error_text.restype = ctypes.c_char_p
conclave.cv_peer_explain.restype = ctypes.c_char_p
conclave.cv_peer_token.restype = ctypes.c_uint64
conclave.cv_peer_close.restype = None
FOREVER = -1


class Options(ctypes.Structure):  # the beginning of struct cv_peer_options
    _fields_ = [
        ("algorithm", ctypes.c_char_p),
        ("peers", ctypes.c_char_p),
        ("id", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


class Peer:
    """A process of a group: `with peer:` is its critical section."""

    def __init__(self, algorithm, peers, number):
        self.peer = ctypes.c_void_p()
        options = Options(algorithm.encode(), peers.encode(), number, 0)
        try:
            self.check(conclave.cv_peer_open_sized(ctypes.byref(self.peer), ctypes.byref(options),
                                                   ctypes.c_size_t(ctypes.sizeof(options))))
        except RuntimeError:
            self.close()
            raise

    def check(self, error):
        if error:
            why = ctypes.create_string_buffer(700)
            text = conclave.cv_peer_explain(self.peer, why, ctypes.c_size_t(len(why)))
            raise RuntimeError(f"{conclave.cv_error_text(error).decode()}; {text.decode()}")

    def __enter__(self):
        self.check(conclave.cv_peer_acquire(self.peer, FOREVER))
        return conclave.cv_peer_token(self.peer)

    def __exit__(self, *_):
        self.check(conclave.cv_peer_release(self.peer))

    def finish(self):
        self.check(conclave.cv_peer_finish(self.peer, FOREVER))

    def close(self):
        conclave.cv_peer_close(self.peer)
        self.peer = None


def count_one(path):
    """Without any care: that is what the lock is for."""
    value = 0
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            value = int(file.read())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{value + 1}\n")


def main():
    algorithm, peers, number, times, path = sys.argv[1:]
    peer = Peer(algorithm, peers, int(number))
    try:
        for _ in range(int(times)):
            with peer:
                count_one(path)
        peer.finish()
    finally:
        peer.close()


if __name__ == "__main__":
    main()
