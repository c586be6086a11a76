"""A progress bar for one run: how much of its calls it has used, what it does now, and each tool as
it is called.

    python3 progress.py embedded /var/tmp/ava-example "where is main?" "$PWD"

The loop is over what a person sees of the run; it ends with the run."""

import sys

import ava

WIDTH = 30


def draw(run: ava.Run, activity: str, done: bool = False) -> None:
    now = run.status()
    full = WIDTH if done else min(WIDTH, now.iteration * WIDTH // (now.max_iterations + 1))
    bar = "#" * full + "." * (WIDTH - full)
    line = f"[{bar}] {now.elapsed_ms / 1000:5.1f}s {now.tokens:6}t {activity:40.40}"
    print("\r" + line if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)


def main(how: str, root: str, task: str, folder: str) -> int:
    with ava.embed(root) if how == "embedded" else ava.open(root) as rt:
        run = rt.spawn(task, role="code_reviewer", cwd=folder)
        for event in run.events():
            content = event.content()
            if event.type == "Activity":
                draw(run, content["text"])
            elif event.type == "ToolCall":
                print(f"calls {content['name']} {str(content.get('args'))[:60]}")
        result = run.wait()
        draw(run, result.status, done=True)
        print(f"\n{result.summary}")
        return 0 if result.status == "success" else 3


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: progress.py embedded|connect ROOT TASK FOLDER")
    try:
        sys.exit(main(*sys.argv[1:]))
    except ava.Error as error:
        sys.exit(f"progress: {error}")
