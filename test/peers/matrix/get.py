#!/usr/bin/env python3
"""The genuine Synapse, from PyPI into a folder that outlives the checks.

    get.py FOLDER      some 150 MB the first time; prints the python that has it

What it needs comes as pip resolves it; the server itself has to have its hash. Exits 77 with one sentence where it cannot be had."""

import fcntl
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../real"))
from get import Missing, call, make_venv  # noqa: E402

VERSION = "1.163.2"
WHEEL = f"matrix-synapse=={VERSION} --hash=sha256:6cecae98b6e1b55dd68e689329cf1677cba103d4160c320f04b26bd081ff1558\n"
SECONDS = 400


def pip(python, end, *words):
    good, said = call([python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:",
                       "--retries", "1", "--timeout", "20", *words], end)
    if not good:
        why = [text for text in said.strip().split("\n") if "ERROR" in text] or said.strip().split("\n")[-1:]
        raise Missing(f"pip could not fetch Synapse: {why[0][:200]}")


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        end = time.monotonic() + SECONDS
        python = make_venv(folder, end)
        if not call([python, "-c", f"import importlib.metadata as m, sys\nsys.exit(m.version('matrix-synapse') != '{VERSION}')"], end)[0]:
            wanted = os.path.join(folder, "wanted.txt")
            with open(wanted, "w", encoding="utf-8") as f:
                f.write(WHEEL)
            pip(python, end, "--no-deps", "--require-hashes", "-r", wanted)
        # What a fetch that was cut off left out comes now; with all there it asks nobody.
        if not call([python, "-m", "pip", "check"], end)[0]:
            pip(python, end, f"matrix-synapse=={VERSION}")
        return python


if __name__ == "__main__":
    try:
        print(fetch(sys.argv[1]))
    except (Missing, OSError, subprocess.SubprocessError) as why:
        print(" ".join(str(why).split()))
        sys.exit(77)
