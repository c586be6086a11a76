"""A thousand runs in one process and one thread, with the offline model, which needs no key and no
network.

    python3 thousand.py embedded /var/tmp/ava-example 1000 "$PWD"

A run that waits costs memory, not a thread; how many are at work at once is a setting (runs.max),
given here as the environment of an embedded runtime."""

import resource
import sys
import time
from collections import Counter

import ava


def main(how: str, root: str, count: str, folder: str) -> int:
    with ava.embed(root, env={"AVA_RUNS_MAX": "100"}) if how == "embedded" else ava.open(root) as rt:
        began = time.monotonic()
        runs = [rt.spawn(f"find the line that says torn tail ({i})", role="code_reviewer", cwd=folder, model="offline")
                for i in range(int(count))]
        spawned = time.monotonic()
        rt.wait(runs)
        ended = time.monotonic()
        ends = Counter(run.status().status for run in runs)
    print(f"{len(runs)} started, {ends.total()} ended, {ends['success']} with success")
    print(f"{spawned - began:.2f} s to start them, {ended - began:.2f} s in all, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at the most")
    return 0 if ends["success"] == len(runs) else 3


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: thousand.py embedded|connect ROOT COUNT FOLDER")
    try:
        sys.exit(main(*sys.argv[1:]))
    except ava.Error as error:
        sys.exit(f"thousand: {error}")
