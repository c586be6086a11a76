"""Go on from a run that reached a limit: what it cost to get there is not paid again.

    python3 go_on.py embedded /var/tmp/ava-example "where is main?" "$PWD"
    python3 go_on.py connect ~/.local/share/ava "where is main?" "$PWD"

The first run may call its model once. Its record is checked, then a new run begins with its
conversation and a budget of its own; a person would be asked about the quote, here the program says yes."""

import sys

import ava


def wait_for(run: ava.Run) -> None:
    result = run.wait()
    print(f"{result.run}: {result.status} after {result.iterations} calls of its model")
    if result.status == "success":
        print(result.summary, result.output, sep="\n")


def main(how: str, root: str, task: str, folder: str) -> int:
    with ava.embed(root) if how == "embedded" else ava.open(root) as rt:
        run = rt.spawn(task, role="code_reviewer", cwd=folder, max_iterations=1)
        wait_for(run)
        replay = run.replay()
        if replay.identical:
            print(f"{run.id} replays identically: {replay.events} events")
        else:
            print(f"{run.id} differs at event {replay.differences[0].seq}: {replay.differences[0].what}")
        quote = run.resume(max_iterations=20)
        print(quote.message)
        more = quote.confirm("yes").run
        if not more:
            raise SystemExit("go_on: nothing was started")
        wait_for(more)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: go_on.py embedded|connect ROOT TASK FOLDER")
    try:
        sys.exit(main(*sys.argv[1:]))
    except ava.Error as error:
        sys.exit(f"go_on: {error}")
