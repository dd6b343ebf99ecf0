"""Runs the commands of the laboratory: `spoken.py CONCLAVE [LANGUAGE [COUNT]]` prints each line that is English, and fails if there
is one.  Run in the source tree."""

import itertools
import pathlib
import re
import subprocess
import sys

from texts import translated

CONVERSION = re.compile(r"%(?!%)[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t|L)?[a-zA-Z]")
# No Portuguese word, and no word of commands, is one of these.
ENGLISH = re.compile(r"(?<![\w-])(?:the|of|and|is|are|was|were|which|that|with|from|this|all|some|nobody|waits|leads|wants)(?![\w-])")
TITLES = re.compile(r"Ongaro & |Angluin, |Hunt, |Maekawa, |Ricart & |Raymond, |Lamport, |Gupta, |Gray & |Franklin, |Chang & |Santoro, |"
                    r"Aguilera |Gifford, |Le Lann, |Itai & |Suzuki & |Carvalho & |Garcia-Molina, |Hirschberg & |Peterson, |Tanenbaum & ")
TIMES = ["--time-limit", "5s"]
CHECK = ["check", "central-lease", "--processes", "2", "--late", "1"]


def commands(conclave):
    listed = subprocess.run([conclave, "list", "--json"], capture_output=True, check=True, text=True).stdout
    algorithms = re.findall(r'^ *"algorithm": "(.*)",$', listed, re.M)
    exercises = sorted(path.stem for path in pathlib.Path("exercises").glob("*.exercise"))
    yield from (["explain", name] for name in algorithms)
    yield from (["sim", name, *TIMES] for name in algorithms)
    for path in sorted(pathlib.Path("scenarios").glob("*.scenario")):
        yield from (["sim", "--scenario", str(path), *more] for more in ([], ["--trace", "mermaid"], ["--trace", "svg"], ["--trace", "graph"]))
    yield ["sim", "central", "--entries", "2000", "--trace", "svg"]
    yield ["sim", "central", "--service-time", "1ms"]
    yield ["sim", "central-elected", "--partition-rate", "1/s", "--detector", "fixed:20ms", *TIMES]
    yield ["sim", "bully", "--detector", "fixed:3ms", "--crash-rate", "1/s", "--recover", *TIMES]
    yield ["sim", "voting", "--processes", "8", "--entries", "500", "--think", "0ms", "--runs", "3"]
    yield from ([*CHECK, *more] for more in ([], ["--fencing"], ["--trace", "svg"], ["--depth", "2"], ["--compact"], ["--keep-going"]))
    yield ["check", "central", "--wait-bound", "2", "--property", "bounded_wait"]
    yield ["check", "itai-rodeh", "--depth", "10"]
    yield from (["compare", "--processes", "3", *more] for more in ([], ["--load", "central", "raymond"]))
    yield from (["odds", *more] for more in (["--table"], ["--n", "5", "--m", "3", "--p", "0.1", "--simulate", "2000"]))
    yield from (["timeout", "-w", "1", "-m", "10", "--delay", "exponential:20ms", *more] for more in ([], ["--plot", "-"]))
    yield ["list"]
    yield ["exercise"]
    yield from (["exercise", name, *more] for name in exercises for more in ([], ["--hint"]))
    yield ["exercise", "central-messages", "--answer", "1"]
    yield ["exercise", "mend-ties", "--answer", "exercises/mend-ties.c"]


def sentences():
    """Parts of English texts that have words enough to be told from others; 0 stands for any number."""
    for english, portuguese in translated().items():
        piece = max(CONVERSION.split(english.replace("%%", "\1")), key=len).replace("\1", "%").strip()
        piece = re.sub(r"\d+", "0", piece.split("\n")[0])
        if english != portuguese and piece not in portuguese and len(re.findall(r"[a-z]{2,}", piece)) > 2:
            yield piece


def main(conclave, language="pt", count=None):
    first, wrong = {}, []  # the command that says a line first, by line
    for command in itertools.islice(commands(conclave), count and int(count)):
        run = subprocess.run([conclave, *command, "--lang", language], capture_output=True, stdin=subprocess.DEVNULL, check=False)
        output = run.stdout.decode() + run.stderr.decode()
        if run.returncode not in (0, 1, 4) or not output:
            wrong.append(f"{command}: ended with {run.returncode}")
        if output.startswith("<"):
            output = re.sub(r"<style>.*?</style>", " ", output, flags=re.S)
            output = "\n".join(re.findall(r">([^<]*\w[^<]*)<", output))
        for line in re.sub(r"\d+(?:\.\d+)?", "0", output).split("\n"):
            first.setdefault(line.strip(), command)
    said = "\n".join(first)
    english = [piece for piece in set(sentences()) if piece in said]
    for line, command in first.items():
        words = next((piece for piece in english if piece in line), None)
        found = words or ENGLISH.search(line) and not TITLES.search(line) and ENGLISH.search(line)[0]
        if found:
            wrong.append(f"{' '.join(command)}: '{found}' in: {line}")
    print(*wrong[:20], f"{len(first)} different lines", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
