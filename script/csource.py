"""What the checks know about C: which files there are, and a file's text with
comments and literals blanked out, line for line; and whether a process has ended."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def files(suffixes, folders=None):
    """Paths below ROOT, relative, sorted: what git tracks or would add; without
    a git work tree, everything outside of build folders."""
    try:
        out = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            capture_output=True, check=True).stdout
        names = [os.fsdecode(n) for n in out.split(b"\0") if n]
    except (OSError, subprocess.CalledProcessError):
        names = walk()
    return sorted(
        n for n in set(names)
        if n.endswith(tuple(suffixes)) and os.path.isfile(os.path.join(ROOT, n))
        and (folders is None or n.split("/")[0] in folders))


def walk():
    names = []
    for folder, subs, here in os.walk(ROOT):
        subs[:] = [s for s in subs if s != ".git" and not s.startswith("build")]
        names += [os.path.relpath(os.path.join(folder, n), ROOT) for n in here]
    return names


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def blank(text, comments=True, literals=True):
    """Comments, and string and character literals, become spaces; newlines stay, so
    that line numbers do."""
    def hide(match):
        token = match.group(0)
        wanted = literals if token[0] in "\"'" else comments
        return re.sub(r"[^\n]", " ", token) if wanted else token
    return TOKEN.sub(hide, text)


def ended(pid):
    """Where nobody reaps orphans, one that has ended stays as a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def report(problems, checked, what):
    """Print `path:line: sentence` for each problem; the exit code."""
    for name, line, text in sorted(problems):
        print(f"{name}:{line}: {text}")
    if problems:
        print(f"{what}: {len(problems)} problems in {checked} files")
        return 1
    print(f"{what}: {checked} files are well")
    return 0
