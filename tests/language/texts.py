"""The Portuguese texts against the English ones: `texts.py CHECK CONCLAVE` prints what is missing, too much or different, and fails
if there is something.  Run in the source tree."""

import collections
import functools
import json
import pathlib
import re
import subprocess
import sys

EXERCISES_IN_C = {"lock", "election"}


def po(path):
    """The entries of a po file, without its header."""
    entries = {}
    for block in re.split(r"\n\s*\n", pathlib.Path(path).read_text(encoding="utf-8")):
        parts = {}
        for word in ("msgid", "msgstr"):
            found = re.search(rf'^{word} ((?:"(?:[^"\\]|\\.)*"\s*)+)', block, re.M)
            parts[word] = "".join(json.loads(piece) for piece in re.findall(r'"(?:[^"\\]|\\.)*"', found[1])) if found else ""
        if parts["msgid"]:
            entries[parts["msgid"]] = parts["msgstr"]
    return entries


@functools.cache
def names():
    return po("po/pt/messages.po")


@functools.cache
def translated():
    """Every entry, whichever file it is in."""
    return {k: v for path in pathlib.Path("po/pt").glob("*.po") for k, v in po(path).items()}


def said(text):
    """The messages that a text speaks of, by the names that the Portuguese has for them."""
    words = set(re.findall(r"(?<![A-Za-z_])[A-Z][A-Z_]{2,}(?![A-Za-z_])", text))
    return {names().get(word, word) for word in words}


def numbers(text):
    return collections.Counter(re.findall(r"\d+(?:\.\d+)?", text))


def needs_translation(text):
    """Formulas have no words: N(N+1)/2, O(log N), 1 .. 2T."""
    return any(word not in ("log", "kn") for word in re.findall(r"[a-z]{2,}", text))


def compare(where, english, portuguese):
    if not portuguese.strip():
        yield f"{where}: has no translation"
    elif numbers(english) != numbers(portuguese):
        yield f"{where}: the numbers differ: {dict(numbers(english))}, {dict(numbers(portuguese))}"


def sources():
    return sorted(path for part in ("mutex", "election") for path in pathlib.Path("src/algorithms", part).glob("*.c"))


def explanations(_):
    folder = pathlib.Path("po/pt/explain")
    for path in sources():
        text = subprocess.run(["awk", "-f", "scripts/comment.awk", path], capture_output=True, check=True).stdout
        of = subprocess.run(["cksum"], input=text, capture_output=True, check=True).stdout.split()[0].decode()
        file = folder / f"{path.stem}.txt"
        if not file.exists():
            yield f"{file}: is missing"
            continue
        first, own = file.read_text(encoding="utf-8").split("\n", 1)
        english = text.decode()
        if first != f"of {of}":
            yield f"{file}: translates another text than that of {path}: translate what has changed, then begin it with 'of {of}'"
        theirs, ours = english.strip("\n").split("\n\n"), own.strip("\n").split("\n\n")
        if len(theirs) != len(ours):
            yield f"{file}: {len(ours)} paragraphs, {len(theirs)} in English"
        for number, (a, b) in enumerate(zip(theirs, ours), 1):
            yield from compare(f"{file}, paragraph {number}", a, b)
            lacks = said(a) - set(re.findall(r"\w+", b))
            if lacks:
                yield f"{file}, paragraph {number}: without {lacks}"
        yield from (f"{file}: too long: {line}" for line in own.split("\n") if len(line) > 100)
    yield from (f"{path}: of no algorithm" for path in folder.glob("*.txt") if path.stem not in {s.stem for s in sources()})


def catalogue(conclave):
    def report(*command):
        return json.loads(subprocess.run([conclave, *command, "--json"], capture_output=True, check=True).stdout)

    for row in report("list"):
        yield from (row[key] for key in ("summary", "cost", "delay", "tolerates"))
        explained = report("explain", row["algorithm"])
        yield from explained["options"].values()
        yield from (field for message in explained["messages"].values() for field in message)


def titles():
    for path in sorted(pathlib.Path("scenarios").glob("*.scenario")):
        yield re.search(r"^title +(.*)$", path.read_text(encoding="utf-8"), re.M)[1]


def fields():
    """Names of what processes remember, which a run in steps shows, and of its values; what is only DRAWN has none."""
    for path in pathlib.Path("src/algorithms").glob("*/*.[ch]"):
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, values in re.findall(r'F\(R,\s*\w+,\s*(\w+),\s*(?:SHOWN|IF_SET|INNER|NAMED\("([^"]*)"\))', text):
            yield name
            yield from filter(None, values.split("|"))


def texts(conclave):
    english = {text for text in [*catalogue(conclave), *titles(), *fields()] if needs_translation(text)} - {"id"}
    for text in sorted(english):
        yield from compare(repr(text), text, translated().get(text, ""))


def stale(_):
    """Entries that translate what the program does not say."""
    literals = "".join(path.read_text(encoding="utf-8") for path in pathlib.Path("src").glob("**/*.[ch]"))
    literals = re.sub(r'"\s*\n\s*"', "", literals) + "\n".join(titles())
    words = set(re.split(r"[^\w-]+", literals))
    for path in ("texts", "messages", "fields"):
        for text in po(f"po/pt/{path}.po"):
            if text not in words and text not in literals:
                yield f"po/pt/{path}.po: nothing says {text!r}"


def items(path):
    """[word, rest, block] for each item of an exercise."""
    found = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line and not line[0].isspace() and line[0] != "#":
            word, _, rest = line.partition(" ")
            found.append([word, rest, ""])
        elif found:
            found[-1][2] += " " + line.strip()
    return found


def exercises(_):
    for path in sorted(pathlib.Path("exercises").glob("*.exercise")):
        all_items = items(path)
        kind = next(rest.split()[0] for word, rest, _ in all_items if word == "answer")
        for (word, rest, block), after in zip(all_items, [*all_items[1:], ["", "", ""]]):
            on_line = word in ("title", "topic")
            in_block = word in ("question", "hint", "explain", "expect") or word == "mistake" and kind in ("number", "text")
            if not on_line and not (in_block and block.strip()):
                continue
            english = rest if on_line else block
            portuguese = "" if after[0] != "pt" else after[1] if on_line else after[2]
            yield from compare(f"{path}: {word} {rest}: {english.strip()[:40]}", english, portuguese)
            wanted = set(re.findall(r"\b[A-Z]{4,}\b", english)) if kind in EXERCISES_IN_C else said(english)
            lacks = wanted - set(re.findall(r"\w+", portuguese))
            if portuguese and lacks:
                yield f"{path}: {word} {rest}: without {lacks}"


CHECKS = {"explanations": explanations, "texts": texts, "stale": stale, "exercises": exercises}

if __name__ == "__main__":
    wrong = list(CHECKS[sys.argv[1]](sys.argv[2]))
    for line in wrong[:20]:
        print(line)
    sys.exit(bool(wrong))
