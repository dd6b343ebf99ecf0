"""A server's certificate is replaced while it runs.

    reload.py TLS CERTIFICATES PID LOG      exit status 0 when all is well

TLS is where the server takes clients, with CERTIFICATES/live.pem, live.locked and the password of that key in
live.password.  CERTIFICATES also has localhost.* and renewed.*, of the same authority and with other passwords.  LOG is
what the server has logged.
"""
import os
import shutil
import signal
import ssl
import sys

from patience import TIMEOUT_S, eventually, judged, serves
from raw import dial
from tls import Site


def main(address, folder, pid, log):
    site = Site(None, address, None, folder, pid)

    def shown():
        """The certificate that a new connection gets."""
        with site.context("alice").wrap_socket(dial(address, TIMEOUT_S), server_hostname="localhost") as connection:
            return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))

    def of(name):
        with open(f"{folder}/{name}.pem", encoding="ascii") as file:
            text = file.read()
        return text[text.index("-----BEGIN"):]

    def put(name, text=None):
        """As a tool for certificates does it: the new file takes the place of the old one."""
        for end in ("pem", "locked", "password"):
            shutil.copy(f"{folder}/{name}.{end}", f"{folder}/new.{end}")
            if text:
                with open(f"{folder}/new.{end}", "w", encoding="ascii") as file:
                    file.write(text)
            os.rename(f"{folder}/new.{end}", f"{folder}/live.{end}")

    def logged(text):
        with open(log, encoding="utf-8") as file:
            return file.read().count(text)

    kept = site.connect(address, "alice")
    assert shown() == of("localhost")
    put("renewed")
    eventually(lambda: shown() == of("renewed"), "files that have changed are read again", pause_s=0.1)
    assert logged("certificates and keys were read again") == 1
    put("localhost", "no certificate")
    os.kill(pid, signal.SIGHUP)
    eventually(lambda: logged("so those before them stay in use"), "bad files are noticed", pause_s=0.1)
    assert logged("a file for TLS cannot be used")
    assert shown() == of("renewed")
    put("localhost")
    os.kill(pid, signal.SIGHUP)
    eventually(lambda: shown() == of("localhost"), "the server was told to read the files again", pause_s=0.1)
    assert kept.call("exists", "/", False).err == 0, "a connection is lost"


serves(sys.argv[1])
with judged():
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
