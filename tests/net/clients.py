"""The tests of real clients that one server has to pass, through a follower of an ensemble: kazoo, the C client
($C_CLIENT) and ZooKeeper's command line."""
import os
import subprocess
import sys

from ensemble import Ensemble, main
from patience import LATE, Late

WIRE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wire")
PLAIN = ["--set", "4lw.commands.whitelist=*", "--set", "extendedTypesEnabled=true"]


def pass_all(directory, command, but=()):
    ensemble = Ensemble(directory, options=PLAIN).start()
    names = subprocess.run([*command, "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(names) > len(but)
    for name in names:
        if name in but:
            continue
        done = subprocess.run([*command, ensemble.followers()[0].address, name], capture_output=True, text=True)
        if done.returncode == LATE:
            raise Late(f"{name}: {done.stdout}{done.stderr}")
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    ensemble.stop()


def kazoo(directory):
    # one waits long for an expiry, and one expects the answers of a standalone server
    pass_all(directory, [sys.executable, f"{WIRE}/kazoo_basic.py"], but=["session_expires", "server_words"])


def kazoo_recipes(directory):
    pass_all(directory, [sys.executable, f"{WIRE}/kazoo_recipes.py"])


def c_client(directory):
    pass_all(directory, [os.environ["C_CLIENT"]])


def command_line(directory):
    pass_all(directory, [f"{WIRE}/zkcli"], but=["others"])  # which shows the members


main([kazoo, kazoo_recipes, c_client, command_line])
