"""`conclave lock` when the network between holder and server is cut: in both directions, and in each alone.
Needs root; $NETWORK is the prefix of the namespaces' names."""
import subprocess

from ensemble import eventually, main
from lock_chaos import Chaos
from locking import CONCLAVE, FOREVER_MS, TTL, Server, Site, unhurried
from partitions import CLIENTS, Network


class Cut(Site):
    """The server has a namespace of its own, in which another client waits."""

    def __init__(self, directory):
        self.network = Network(1)
        self.inside = ["ip", "netns", "exec", self.network.space(1)]
        self.directory = directory
        self.server = Server(directory, prefix=self.inside, host="10.77.1.1")
        self.environment = self.surroundings()

    def __exit__(self, *_):
        super().__exit__()
        self.network.remove()

    def start_inside(self, *words):
        return subprocess.Popen([*self.inside, CONCLAVE, *unhurried(words)], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)


def holder_cut_off(directory):
    with Cut(directory) as site:
        cuts = [lambda: site.network.partition([1], [CLIENTS]), lambda: site.network.cut(1, CLIENTS),
                lambda: site.network.cut(CLIENTS, 1)]
        for cut in cuts:
            before = site.begun()
            holder = site.start("lock", "x", "--ttl", TTL, *site.body(FOREVER_MS, "deaf", "family"))
            site.await_body(before + 1)
            other = site.start_inside("lock", "x", *site.body(10))
            eventually(lambda: len(site.contenders("x")) == 2, "it waits")
            cut()
            assert holder.wait() == 76, holder.stderr.read()
            assert site.is_free() or site.begun() > before + 1
            assert other.wait() == 0, other.stderr.read()
            site.network.heal()
        site.check()


def chaos_with_cuts(directory):
    with Cut(directory) as site:
        Chaos(site, site.network).run()


if __name__ == "__main__":
    main([holder_cut_off, chaos_with_cuts])
