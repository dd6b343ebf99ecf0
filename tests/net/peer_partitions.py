"""Peers whose network is split, in network namespaces as of partitions.py: who leads in which part, and what the
records say of it.  Needs root."""
import os

from ensemble import eventually, main, write_key
from partitions import Network
from peers import Group, agreed, judged, leaders, until


def split(directory, algorithm, processes):
    """A group with a leader whom all know, who is then cut off from the others."""
    network = Network(processes)
    os.makedirs(f"{directory}/{algorithm}")
    key = write_key(f"{directory}/key", "the secret of all of these peers\n")
    group = Group(directory, algorithm, processes, options=["--key", key], host=lambda n: f"10.77.{n}.1",
                  prefix=lambda n: ("ip", "netns", "exec", network.space(n)))
    for number in group.numbers:
        group.start(number, "elect")
    until(group, lambda: agreed(group), "all follow one")
    leader = next(iter(leaders(group).values()))
    others = [number for number in group.numbers if number != leader]
    network.partition([leader], others)
    return network, group, leader, others


def finish(network, group):
    group.stop()
    network.remove()
    return judged(group)["verdicts"]


def bully_has_two_leaders(directory):
    """Each part has its own, and both know it for certain; when the network is whole, they agree again."""
    network, group, leader, others = split(directory, "bully", 3)

    def both_lead():
        last = leaders(group)
        return last[leader] == leader and {last[number] for number in others} == {max(others)}
    until(group, both_lead, "each part has a leader")
    network.heal()
    until(group, lambda: agreed(group), "all follow one again")
    verdicts = finish(network, group)
    assert verdicts["uniqueness"] == "violated" and "lead" in verdicts["why"]["uniqueness"], verdicts


def a_minority_has_no_leader(directory):
    """The leader of majority-terms steps down when it is alone, and no term has two."""
    network, group, leader, others = split(directory, "majority-terms", 3)

    def steps_down():
        last = leaders(group)
        new = {last[number] for number in others}
        return last[leader] is None and len(new) == 1 and new < set(others)
    until(group, steps_down, "the majority has a leader, and the minority none")
    network.heal()
    until(group, lambda: agreed(group), "all follow one again")
    eventually(lambda: leaders(group)[leader] is not None, "also the one that was cut off")
    verdicts = finish(network, group)
    assert verdicts["uniqueness"] == "held", verdicts


if __name__ == "__main__":
    main([bully_has_two_leaders, a_minority_has_no_leader])
