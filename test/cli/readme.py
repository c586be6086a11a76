"""What README.md and doc/TOUR.md say that can be compared: the length of the first screen, each command and
option of their examples with `ava help`, each figure with the page that has it and the command that repeats it.
test_readme.sh starts this with $AVA and $SRCDIR."""

import os
import re
import subprocess

from api import AVA, check

ROOT = os.environ["SRCDIR"]
PAGES = ("doc/PERFORMANCE.md", "doc/RELIABILITY.md", "doc/CLUSTER.md")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def ava_help(*words):
    return subprocess.run([AVA, "help", *words], capture_output=True, text=True, check=False).stdout


def examples(text):
    """The commands of ava in the blocks of a shell, comments and quoted words apart."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.splitlines():
            line = re.sub(r'"[^"]*"', "TEXT", line)
            line = re.sub(r"(^|\s)#.*|[|>].*", "", line).strip()
            if re.match(r"(watch )?ava(\s|$)", line):
                yield line.removeprefix("watch ").split()[1:]


def test_examples(name):
    commands = set(re.findall(r"^  ([a-z]+) ", ava_help(), re.M))
    found, wrong = 0, []
    for words in examples(read(name)):
        found += 1
        if not words:
            continue
        said = ava_help(words[0])
        options = [w.partition("=")[0] for w in words[1:] if w.startswith("-")]
        # A command with commands of its own has no options in the head of its help.
        wrong += [f"ava {' '.join(words)}: {o}" for o in options if not re.search(rf"(?<![\w-]){o}(?![\w-])", said)]
        if words[0] not in commands:
            wrong.append(f"ava {' '.join(words)}")
    check(f"{name}: each command and option is in ava help", found > 10 and not wrong, found, wrong)


def test_figures():
    """A row: the figure, what it is of, the command that repeats it."""
    table = read("README.md").split("| figure |")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    pages = "\n".join(map(read, PAGES))
    benchmarks = set(re.findall(r"benchmark\('(\w+)'", read("bench/meson.build")))
    wrong = []
    for figure, what, command in rows:
        for number in re.findall(r"\d[\d,.]*\d|\d", re.sub(r"\(\d+ [A-Z][a-z]+\)", "", f"{figure} {what}")):
            if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", pages):
                wrong.append(f"{number} stands in none of {PAGES}")
        command = command.strip("`").split()
        paths = [word for word in command if "/" in word and not word.startswith(("./", "build/"))]
        if command[:2] == ["./dev", "bench"]:
            wrong += [name for name in command[2:] if name not in benchmarks]
        elif not paths or not all(os.path.exists(os.path.join(ROOT, path)) for path in paths):
            wrong.append(" ".join(command))
    check("each of the four figures has its page and its command", len(rows) == 4 and not wrong, wrong)


lines = read("README.md").count("\n")
check("README.md has at most 150 lines", lines <= 150, lines)
test_examples("README.md")
test_examples("doc/TOUR.md")
test_figures()
