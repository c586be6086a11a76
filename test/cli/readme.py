"""What README.md and doc/TOUR.md say that can be compared: the length of the first screen, each command and
option of their examples with `ava help`, each figure with the page that has it and the command that repeats it.
test_readme.sh starts this with $AVA, $SRCDIR and $T."""

import os
import re
import subprocess

from api import AVA, PATIENCE, check, until

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


def test_paste():
    """The lines of the tour that kill a daemon, as a person without a key and without settings pastes them."""
    block = read("doc/TOUR.md").split("<!-- paste: ")[1].split("```sh\n")[1].split("```")[0]
    start, kill = re.split(r"(?<=--background\n)", block)
    kill, rest = kill.split("sleep 12; ")
    home = os.path.join(os.environ["T"], "pasted")
    os.mkdir(home, 0o700)
    env = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "AVA_DATA", "AVA_MODEL"))}
    env.update(HOME=home, PATH=os.path.dirname(AVA) + ":" + env["PATH"])

    def sh(text, cwd=home + "/teahouse"):
        return subprocess.run(["sh", "-c", text], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False).stdout

    try:
        said = sh(start, home)
        run = re.search(r"^(S-[0-9a-f]+) runs in the background", said, re.M)
        if not check("what the tour has to paste starts a run", run, said):
            return
        until(lambda: "$0.01" in sh("ava ps"))
        said = sh(kill)
        rows = re.findall(rf"^{run[1]} .*? running .* (\$\S+)", said, re.M)
        check("the run is the same, at the same cost, before and behind the kill", rows == ["$0.01", "$0.01"], said)
        sh(f"ava wait {run[1]}")
        trace = sh(f"ava trace {run[1]}")
        check("its trace has the call that the kill broke off", re.search(r"turn 2\n.*, error\n.* tool_use\n", trace), trace)
        said = sh(rest)
        check("it ends, each reply paid once, and its log is whole",
              re.search(rf"^{run[1]} .* complete .* \$0\.03 ", said, re.M) and "all is as it was sealed" in said, said)
    finally:
        sh("ava stop --now", home)


lines = read("README.md").count("\n")
check("README.md has at most 150 lines", lines <= 150, lines)
test_examples("README.md")
test_examples("doc/TOUR.md")
test_figures()
test_paste()
