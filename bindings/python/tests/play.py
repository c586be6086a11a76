"""play.py [PATTERN...]: the package's tests, embedded and connected, in lines `ok N - name`.

The package is installed where this Python finds it, and $AVA_AVAD names a daemon. Each test has a
data root of its own below one temporary folder, and no keys, settings or data of the caller's."""

import os
import shutil
import sys
import tempfile
import time
import traceback
import unittest

import world


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def main(patterns):
    here = os.path.dirname(os.path.abspath(__file__))
    folder = tempfile.mkdtemp(prefix="ava-python-")
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith(("AVA_", "XDG_")) and name != "AVA_AVAD":
            del os.environ[name]
    os.environ.update(HOME=folder, AVA_DISK_FREE_MIN_MB="0", AVA_DISK_BALLAST_MB="0")
    number = failed = 0
    for mode in ("embedded", "connected"):
        world.MODE, world.FOLDER = mode, os.path.join(folder, mode)
        for test in each(unittest.TestLoader().discover(here)):
            name = f"{mode}: {test.id()}"
            if patterns and not any(p in name for p in patterns):
                continue
            number += 1
            result = unittest.TestResult()
            began = time.monotonic()
            test.run(result)
            took = time.monotonic() - began
            for _, text in result.errors + result.failures:
                print("\n".join("# " + line for line in text.split("\n")))
            word = "ok" if result.wasSuccessful() else "not ok"
            failed += word != "ok"
            why = f" # SKIP {result.skipped[0][1]}" if result.skipped else ""
            print(f"{word} {number} - {name}{why}" if why or took < 2 else f"{word} {number} - {name} # {took:.1f} s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    if not number:
        sys.exit("play.py: no test has one of these in its name")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception:
        traceback.print_exc()
        sys.exit(2)
