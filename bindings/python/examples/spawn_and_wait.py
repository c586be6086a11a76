"""Start one run in the background, wait for it, print what it found.

    python3 spawn_and_wait.py embedded /var/tmp/ava-example "where is main?" "$PWD"
    python3 spawn_and_wait.py connect ~/.local/share/ava "where is main?" "$PWD"

With "embedded" the runtime is in this process, with "connect" it is the daemon of that data
root; nothing else differs."""

import sys

import ava


def main(how: str, root: str, task: str, folder: str) -> int:
    with ava.embed(root) if how == "embedded" else ava.open(root) as rt:
        run = rt.spawn(task, role="code_reviewer", cwd=folder)
        print("started", run.id)
        result = run.wait()
        print(f"{result.run}: {result.status} after {result.duration_ms / 1000:.1f} s, {result.tokens} tokens, "
              f"{result.citations} citations")
        print(result.summary, result.output, sep="\n")
        return 0 if result.status == "success" else 3


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: spawn_and_wait.py embedded|connect ROOT TASK FOLDER")
    try:
        sys.exit(main(*sys.argv[1:]))
    except ava.Error as error:
        sys.exit(f"spawn_and_wait: {error}")
