"""Subagents in a program that has a loop of its own, here asyncio's: each line of standard input is a
task, each result is printed when it is there, and the program stays responsive meanwhile.

    printf '%s\\n' "where is main?" "where are errors made?" |
        python3 own_loop.py embedded /var/tmp/ava-example "$PWD"

No thread is made: the loop sleeps on the runtime's descriptor beside its own."""

import asyncio
import sys

import ava


async def follow(run: ava.Run) -> str:
    async for item in run.items():
        print(run.id, item["kind"], item["title"])
    result = await run.result()
    print(f"{result.run} {result.status}: {result.summary}", flush=True)
    return result.status


async def tasks(rt: ava.Runtime, folder: str) -> int:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    following = []
    while line := (await lines.readline()).decode().strip():
        run = rt.spawn(line, role="code_reviewer", cwd=folder)
        print(f"{run.id} begins: {line}", flush=True)
        following.append(asyncio.create_task(follow(run)))
    statuses = await asyncio.gather(*following)
    return 0 if set(statuses) <= {"success"} else 3


def main(how: str, root: str, folder: str) -> int:
    with ava.embed(root) if how == "embedded" else ava.open(root) as rt:
        return asyncio.run(tasks(rt, folder))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: own_loop.py embedded|connect ROOT FOLDER")
    try:
        sys.exit(main(*sys.argv[1:]))
    except ava.Error as error:
        sys.exit(f"own_loop: {error}")
