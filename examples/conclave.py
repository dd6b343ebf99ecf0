#!/usr/bin/env python3
"""The library from Python, through ctypes: conclave.py PATH VALUE

Creates or writes a node, watches it, and writes it once more.  $LIBCONCLAVE is the library
(libconclave.so.0 otherwise), $CONCLAVE_SERVER the servers.
"""

import ctypes
import os
import sys
import threading

conclave = ctypes.CDLL(os.environ.get("LIBCONCLAVE", "libconclave.so.0"))
conclave.cv_error_text.restype = ctypes.c_char_p
conclave.cv_explain.restype = ctypes.c_char_p
conclave.cv_close.restype = None
conclave.cv_result_free.restype = None

WATCH = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
NODE_EXISTS = -110
OP_GET = 3


class Acl(ctypes.Structure):
    _fields_ = [("permissions", ctypes.c_int32), ("scheme", ctypes.c_char_p), ("id", ctypes.c_char_p)]


class Op(ctypes.Structure):  # struct cv_op
    _fields_ = [
        ("type", ctypes.c_int),
        ("path", ctypes.c_char_p),
        ("data", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("version", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("ttl", ctypes.c_int64),
        ("acl", ctypes.POINTER(Acl)),
        ("acl_count", ctypes.c_size_t),
        ("ops", ctypes.c_void_p),
        ("op_count", ctypes.c_size_t),
        ("watch", WATCH),
        ("watch_arg", ctypes.c_void_p),
        ("joining", ctypes.c_char_p),
        ("leaving", ctypes.c_char_p),
        ("members", ctypes.c_char_p),
        ("reserved", ctypes.c_void_p * 4),
    ]


class Result(ctypes.Structure):  # the beginning of struct cv_result
    _fields_ = [
        ("error", ctypes.c_int),
        ("zxid", ctypes.c_int64),
        ("path", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    ]


class Client:
    def __init__(self):
        self.client = ctypes.c_void_p()
        self.watches = []  # Python must not collect what the library may call
        error = conclave.cv_open_sized(ctypes.byref(self.client), None, ctypes.c_size_t(0))
        if error:
            why = ctypes.create_string_buffer(500)
            text = conclave.cv_explain(self.client, why, ctypes.c_size_t(len(why)))
            conclave.cv_close(self.client)
            raise SystemExit(f"{conclave.cv_error_text(error).decode()}: {text.decode()}")

    def check(self, error):
        if error:
            raise RuntimeError(conclave.cv_error_text(error).decode())

    def write(self, path, value):
        error = conclave.cv_create(self.client, path, value, ctypes.c_size_t(len(value)), 0, None, ctypes.c_size_t(0))
        if error == NODE_EXISTS:
            error = conclave.cv_set(self.client, path, value, ctypes.c_size_t(len(value)), -1)
        self.check(error)

    def read(self, path, changed):
        """The data of a node; `changed` is called once, when it is not like that any more."""
        watch = WATCH(lambda kind, at, arg: changed())
        self.watches.append(watch)
        result = ctypes.POINTER(Result)()
        op = Op(type=OP_GET, path=path, watch=watch)
        self.check(conclave.cv_call(self.client, ctypes.byref(op), ctypes.byref(result)))
        data = ctypes.string_at(result.contents.data, result.contents.size)
        conclave.cv_result_free(result)
        return data

    def close(self):
        conclave.cv_close(self.client)


def main():
    path, value = (word.encode() for word in sys.argv[1:3])
    client = Client()
    news = threading.Event()
    client.write(path, value)
    print(client.read(path, news.set).decode())
    client.write(path, value + b", changed")
    news.wait()
    print(client.read(path, lambda: None).decode())
    client.close()


if __name__ == "__main__":
    main()
