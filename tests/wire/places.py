"""Addresses and ports of loopback that are free, and that no other program of tests uses at the same time.

    places.py COUNT             ADDRESS PORT: an address, and the first of so many ports in a row there
    places.py COUNT anywhere    PORT: the first of so many that are free at every address

The program that asks is to use them soon.  For as long as this process lives, no other one of this kind gets them: an
abstract socket belongs to the network in which the ports are, and ends with its process, however that ends.
"""
import random
import socket
import sys

FIRST, END = 20000, 26000  # of free_ports: below those that the system gives out, and those of hosts
PORTS_OF_A_HOST = range(26000, 26100)
chance = random.SystemRandom()  # not what SEED repeats
reserved = []


def is_reserved(name):
    """Whether this process has it from now on."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0conclave-tests {name}")
    except OSError:
        mark.close()
        return False
    reserved.append(mark)
    return True


def are_free(host, ports):
    try:
        for port in ports:
            with socket.socket() as one:
                one.bind((host, port))
    except OSError:
        return False
    return True


def free_host(ports=PORTS_OF_A_HOST):
    """An address of which these ports are free."""
    for _ in range(1000):
        host = f"127.{chance.randrange(64, 128)}.{chance.randrange(256)}.{chance.randrange(1, 255)}"
        if are_free(host, ports) and is_reserved(host):
            return host
    raise AssertionError("no address is free")


def free_ports(count):
    """The first of so many ports in a row that are free at every address."""
    for _ in range(1000):
        first = chance.randrange(FIRST, END - count)
        ports = range(first, first + count)
        if are_free("", ports) and all(is_reserved(port) for port in ports):
            return first
    raise AssertionError("no port is free")


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    if sys.argv[2:] == ["anywhere"]:
        print(free_ports(wanted))
    else:
        beginning = chance.randrange(FIRST, END - wanted)
        print(free_host(range(beginning, beginning + wanted)), beginning)
