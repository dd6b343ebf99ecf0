"""kazoo's recipes under contention.  Each test states what a server that loses, doubles or reorders
something would break: two inside, a sum that is not the sum, an item taken twice.

What may be inside at once is judged outside the server under test, by locks of the file system,
which all members of a crowd share."""
import collections
import contextlib
import datetime
import fcntl
import os
import tempfile
import threading
import time

from kazoo.exceptions import LockTimeout

from kazoo_common import TIMEOUT_S, crowd, eventually, joined, main

MEMBERS = 4
ROUNDS = 15


class Room:
    """A room for so many: entering a full one is an error, and does not wait."""

    def __init__(self, slots=1):
        self.directory = tempfile.mkdtemp()
        self.slots = slots

    def enter(self, how=fcntl.LOCK_EX):
        for slot in range(self.slots):
            file = open(f"{self.directory}/{slot}", "w")
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                return file  # closing it leaves the room
            except BlockingIOError:
                file.close()
        raise AssertionError(f"more than {self.slots} inside")

    def remove(self):
        for name in os.listdir(self.directory):
            os.unlink(f"{self.directory}/{name}")
        os.rmdir(self.directory)


def careless_increment(zk, path):
    """Loses an increment unless it is alone."""
    value = int(zk.get(path)[0])
    time.sleep(0.001)
    zk.set(path, b"%d" % (value + 1))


def lock(site):
    zk, room = site.client(), Room()
    zk.create("/sum", b"0")

    def work(own, index):
        client = own.client()
        for _ in range(ROUNDS):
            with client.Lock("/lock", f"member {index}"):
                with room.enter():
                    careless_increment(client, "/sum")

    crowd(site, MEMBERS, work)
    room.remove()
    assert int(zk.get("/sum")[0]) == MEMBERS * ROUNDS
    assert zk.get_children("/lock") == []


def lock_fair(site):
    """Waiting clients are served in the order in which they came."""
    zk, order, waiters = site.client(), [], []
    first = zk.Lock("/lock", "first")
    first.acquire()

    def wait(index, client):
        with client.Lock("/lock", f"{index}"):
            order.append(index)

    for i in range(6):
        waiters.append(threading.Thread(target=wait, args=(i, site.client()), daemon=True))
        waiters[-1].start()
        eventually(lambda: len(zk.get_children("/lock")) == i + 2, "its node in the queue")
    assert first.contenders() == ["first"] + [f"{i}" for i in range(6)]
    first.release()
    for waiter in waiters:
        joined(waiter)
    assert order == list(range(6)), order


def lock_freed_by_death(site):
    """The lock of a holder whose session ends goes to the next one."""
    holder, waiter = site.client(), site.client()
    assert holder.Lock("/lock").acquire()
    assert not waiter.Lock("/lock").acquire(blocking=False)
    taken = threading.Event()

    def take():
        with waiter.Lock("/lock"):
            taken.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert not taken.wait(0.3)
    holder.stop()
    eventually(taken.is_set, "the next one has it")
    joined(thread)


@contextlib.contextmanager
def with_retries(lock):
    """A reader of kazoo 2.8 may wait for a writer that came later and waits for it: it gives up
    after a while and asks again."""
    patience = 0.1
    while True:
        try:
            lock.acquire(timeout=patience)
            break
        except LockTimeout:
            patience *= 1.5
    yield
    lock.release()


def read_write_lock(site):
    """Readers may meet, a writer is alone."""
    zk, room = site.client(), Room()
    for path, value in (("/left", b"0"), ("/right", b"0"), ("/inside", b"")):
        zk.create(path, value)

    def mixed(own, index):
        client = own.client()
        for number in range(ROUNDS):
            if (number + index) % 3 == 0:
                with client.WriteLock("/lock", f"w{index}"), room.enter():
                    careless_increment(client, "/left")
                    careless_increment(client, "/right")
            else:
                lock = client.ReadLock("/lock", f"r{index}")
                with with_retries(lock), room.enter(fcntl.LOCK_SH):
                    assert client.get("/left")[0] == client.get("/right")[0], "half a write"

    def only_readers(own, index):
        client = own.client()
        with client.ReadLock("/lock"):
            client.create(f"/inside/{index}")
            eventually(lambda: len(client.get_children("/inside")) == MEMBERS, "all inside")

    crowd(site, MEMBERS, mixed)
    room.remove()
    crowd(site, MEMBERS, only_readers)
    writes = sum((number + i) % 3 == 0 for i in range(MEMBERS) for number in range(ROUNDS))
    assert zk.get("/left")[0] == zk.get("/right")[0] == b"%d" % writes


def election(site):
    zk, room = site.client(), Room()
    zk.create("/sum", b"0")

    def work(own, index):
        client, led = own.client(), []

        def lead():
            with room.enter():
                careless_increment(client, "/sum")
                led.append(1)

        for _ in range(ROUNDS // 3):
            client.Election("/election", f"member {index}").run(lead)
        return len(led)

    assert crowd(site, MEMBERS, work) == [ROUNDS // 3] * MEMBERS
    room.remove()
    assert int(zk.get("/sum")[0]) == MEMBERS * (ROUNDS // 3)


def semaphore(site):
    room, zk = Room(2), site.client()

    def work(own, index):
        client = own.client()
        for _ in range(ROUNDS // 2):
            with client.Semaphore("/semaphore", f"member {index}", max_leases=2):
                with room.enter():
                    time.sleep(0.002)

    crowd(site, 2 * MEMBERS, work)
    room.remove()
    assert zk.Semaphore("/semaphore", max_leases=2).lease_holders() == []


def barrier(site):
    zk = site.client()
    gate = zk.Barrier("/barrier")
    gate.create()
    zk.create("/waiting")

    def work(own, index):
        client = own.client()
        client.create(f"/waiting/{index}")
        assert client.Barrier("/barrier").wait(TIMEOUT_S)
        return client.exists("/open") is not None

    def open_when_all_wait():
        eventually(lambda: len(zk.get_children("/waiting")) == MEMBERS, "all wait")
        time.sleep(0.2)
        zk.create("/open")
        assert gate.remove()

    opener = threading.Thread(target=open_when_all_wait)
    opener.start()
    passed = crowd(site, MEMBERS, work)
    opener.join()
    assert all(passed), "somebody passed a barrier that was closed"


def double_barrier(site):
    zk = site.client()
    for path in ("/before", "/inside", "/after"):
        zk.create(path)

    def work(own, index):
        client = own.client()

        def count(where, number):
            return sum(name.startswith(f"{number}-") for name in client.get_children(where))

        for number in range(3):
            gate = client.DoubleBarrier(f"/double{number}", MEMBERS, f"member {index}")
            client.create(f"/before/{number}-{index}")
            gate.enter()
            assert count("/before", number) == MEMBERS, "entered before all had come"
            # kazoo forgets members that are still entering when the first one leaves
            client.create(f"/inside/{number}-{index}")
            eventually(lambda: count("/inside", number) == MEMBERS, "all inside")
            client.create(f"/after/{number}-{index}")
            gate.leave()
            assert count("/after", number) == MEMBERS, "left before all were done"

    crowd(site, MEMBERS, work)


def consume(take, finished):
    """Takes until a producer says that there is no more."""
    items = []
    while True:
        item = take()
        if item is not None:
            items.append(item)
        elif finished():
            return items


def produce_and_consume(site, produce, make_take, left):
    """Two produce, the others consume: every item comes out once."""
    zk = site.client()
    zk.create("/done")
    zk.create("/queue")

    def work(own, index):
        client = own.client()
        if index < 2:
            for i in range(4 * ROUNDS):
                produce(client, b"%d %03d" % (index, i))
            client.create(f"/done/{index}")
            return []
        return consume(make_take(client), lambda: len(client.get_children("/done")) == 2)

    taken = [item for items in crowd(site, MEMBERS, work) for item in items]
    # the last ones may have been put in between a consumer's last look and the end of the producers
    taken += consume(make_take(zk), lambda: left(zk) == 0)
    counts = collections.Counter(taken)
    wanted = {b"%d %03d" % (p, i) for p in range(2) for i in range(4 * ROUNDS)}
    assert set(counts) == wanted, f"lost: {sorted(wanted - set(counts))[:5]}"
    assert max(counts.values()) == 1, f"twice: {counts.most_common(3)}"


def queue(site):
    produce_and_consume(site, lambda zk, item: zk.Queue("/queue").put(item),
                        lambda zk: zk.Queue("/queue").get, lambda zk: len(zk.Queue("/queue")))


def queue_order(site):
    zk = site.client()
    line = zk.Queue("/queue")
    for i in range(20):
        line.put(b"%d" % i, priority=50 if i % 2 else 100)
    items = [int(line.get()) for _ in range(20)]
    assert items == list(range(1, 20, 2)) + list(range(0, 20, 2)) and line.get() is None, items


def locking_queue(site):
    def make_take(zk):
        line = zk.LockingQueue("/queue")

        def take():
            item = line.get(timeout=0.3)
            assert item is None or line.consume()
            return item

        return take

    produce_and_consume(site, lambda zk, item: zk.LockingQueue("/queue").put(item), make_take,
                        lambda zk: len(zk.LockingQueue("/queue")))


def locking_queue_returns(site):
    """What a consumer held when its session ended is there for the next."""
    zk, dying = site.client(), site.client()
    zk.LockingQueue("/queue").put(b"work")
    assert dying.LockingQueue("/queue").get(timeout=TIMEOUT_S) == b"work"
    line = zk.LockingQueue("/queue")
    assert line.get(timeout=0.2) is None
    dying.stop()
    assert line.get(timeout=TIMEOUT_S) == b"work" and line.consume()
    assert len(line) == 0


def counter(site):
    def work(own, index):
        number = own.client().Counter("/counter")
        for _ in range(ROUNDS):
            number += index + 1
            number -= 1

    crowd(site, MEMBERS, work)
    assert site.client().Counter("/counter").value == ROUNDS * sum(range(MEMBERS))


def party(site):
    zk, guests = site.client(), [site.client() for _ in range(MEMBERS)]
    parties = [g.Party("/party", f"guest {i}") for i, g in enumerate(guests)]
    shallow = [g.ShallowParty("/shallow", f"guest{i}") for i, g in enumerate(guests)]
    for member in parties + shallow:
        member.join()
    everyone = [f"guest {i}" for i in range(MEMBERS)]
    assert sorted(zk.Party("/party")) == everyone and len(zk.ShallowParty("/shallow")) == MEMBERS
    parties[0].leave()
    assert sorted(zk.Party("/party")) == everyone[1:]
    guests[1].stop()
    assert sorted(zk.Party("/party")) == everyone[2:] and len(zk.ShallowParty("/shallow")) == 3


def set_partitioner(site):
    """Once all agree, each element belongs to exactly one, also when a member has died."""
    elements = [f"shard {i}" for i in range(9)]
    clients = [site.client() for _ in range(3)]
    parts = [zk.SetPartitioner("/parts", set=elements, identifier=f"{i}", time_boundary=0.2)
             for i, zk in enumerate(clients)]

    def shares(members):
        for member in members:
            assert not member.failed
            if member.release:
                member.release_set()
            elif member.allocating:
                member.wait_for_acquire(0.05)
        return [list(m) if m.acquired else [] for m in members]

    for members in (parts, parts[1:]):
        eventually(lambda: sorted(sum(shares(members), [])) == elements, "a whole partition")
        sizes = [len(share) for share in shares(members)]
        assert max(sizes) - min(sizes) <= 1, sizes
        clients[0].stop()


def lease(site):
    zk, hour = site.client(), datetime.timedelta(hours=1)

    def work(own, index):
        client = own.client()
        single = client.NonBlockingLease("/lease", hour, identifier=f"{index}")
        several = client.MultiNonBlockingLease(2, "/leases", hour, identifier=f"{index}")
        return bool(single), bool(several)

    got = crowd(site, MEMBERS, work)
    assert sum(single for single, _ in got) == 1 and sum(several for _, several in got) == 2, got
    holder = [single for single, _ in got].index(True)
    assert zk.NonBlockingLease("/lease", hour, identifier=f"{holder}"), "it may renew its own"

    def later():
        return datetime.datetime.utcnow() + 2 * hour

    assert zk.NonBlockingLease("/lease", hour, identifier="successor", utcnow=later)


main([lock, lock_fair, lock_freed_by_death, read_write_lock, election, semaphore, barrier,
      double_barrier, queue, queue_order, locking_queue, locking_queue_returns, counter, party,
      set_partitioner, lease])
