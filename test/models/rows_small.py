"""Small windows: below 16,384 tokens tools are described shortly, and some are shown only when they are needed."""

import json
import subprocess

import play
from play import Row, judge
from rows_windows import answers, prompt_of, read_many, window
from service import call, submit, text


def names(r):
    return [t.get("function", t)["name"] for t in r.body.get("tools") or []]


def tells(w):
    return answers(props={"default_generation_settings": {"n_ctx": w}})


def strict(w, then):
    """As llama.cpp: a prompt that does not fit is refused, and so is one more token."""
    return window(w, then, "request ({p} tokens) exceeds the available context size ({w} tokens)", counts_output=False)


def never_refused(w, result=None):
    def sent(seen):
        large = [prompt_of(r) for r in seen if prompt_of(r) > w]
        longest = max([len(m["content"]) for r in seen for m in r.messages("tool")] or [0])
        if large:
            return f"requests of {large} tokens"
        return None if longest <= w // 4 * 3 + 200 else f"a result of {longest} bytes"
    return sent


def replayed(world, row):
    printed, result = world.run(row)
    wrong = judge(row, printed, result, world.seen(row))
    again = world.ava("replay", result.get("subagent_id", "?"))
    return wrong + ([] if again.returncode == 0 and "identical" in again.stdout + again.stderr
                    else [again.stdout + again.stderr])


def reads(k, then):
    """k large files, one a reply, each asked for from another place."""
    def script(n, r):
        return call(n, r, "read_file", {"path": f"big{n % 8}.txt", "first_line": n}) if n <= k else then(n, r)
    return script


def fetch(n, r):
    """A result that was taken out is asked for again, when the tool for it is there; then the end."""
    if "read_result" in names(r) and not any("result of c1.1" in m["content"] for m in r.messages("tool")):
        return call(n, r, "read_result", {"call_id": "c1.1", "search": "line 7"})
    return submit(n, r)


def shown_later(seen):
    """read_result stands behind the tools that were there before, once results were taken out."""
    first, last = names(seen[0]), names(seen[-1])
    if "read_result" in first or last != first + ["read_result"]:
        return f"tools {first}, then {last}"
    fetched = [m["content"] for m in seen[-1].messages("tool") if "result of c1.1" in m["content"]]
    if not fetched or "line 7" not in fetched[0]:
        return "what was taken out was not read again"
    return never_refused(8192)(seen)


def shown_at_once(seen):
    missing = {"read_result", "ask_person", "memory_search"} - set(names(seen[0]))
    return f"not shown: {missing}" if missing else None


def unshown(n, r):
    """A tool that is not shown is called all the same."""
    return call(n, r, "memory_search", {"query": "tax"}) if n == 1 else submit(n, r)


def called(seen):
    first, last = names(seen[0]), names(seen[-1])
    return None if last == first + ["memory_search"] else f"tools {first}, then {last}"


def resumed(world, row):
    """Stopped at its limit behind a result that was cut, it goes on: read_result is there, and the replay is the same."""
    printed, result = world.run(row, "--max-iterations", "6")
    run = result.get("subagent_id", "?")
    more = world.ava("resume", run, "--max-iterations", "30", "--yes", "--json")
    try:
        end = json.loads(more.stdout)
    except ValueError:
        return [printed.stdout, more.stdout + more.stderr]
    wrong = judge(row, more, end, world.seen(row))
    again = world.ava("replay", end["subagent_id"])
    return wrong + ([] if again.returncode == 0 else [again.stdout + again.stderr])


# ---- the conversation: Ava proposes, the person says yes, the subagent ends, she tells its result

def delegate(name):
    def script(n, r):
        said = r.messages()[-1]["content"]
        if "submit_result" in names(r):
            return submit(n, r)
        if r.messages()[-1]["role"] == "tool":
            return text(r, "It looks for the rate.")
        if "has ended" in said:
            return text(r, "It is 19 percent.")
        if "how did" in said:
            return text(r, "It looked.")
        return call(n, r, "spawn_subagent", {"role": "code_reviewer", "task": f"Find the TAX rate. [row {name}]"})
    return script


def talk(world, row):
    """Her tools are few until there is a subagent; those about it come behind them, and stay over a restart."""
    def chat(words, *more):
        return subprocess.run([play.AVA, "chat", *more], cwd=world.work, env=world.env, input=words, capture_output=True,
                              text=True, timeout=play.PATIENCE, check=False)

    p = chat(f"Have a subagent find the tax rate. [row {row.name}]\nyes\nhow did it go?\n")
    before = len(world.seen(row))
    world.end_daemon()
    chat("how did it go, once more?\n", "-c")
    hers = [r for r in world.seen(row) if "submit_result" not in names(r)]
    first, last = (names(hers[0]), names(hers[-1])) if hers else ([], [])
    wrong = []
    if "19 percent" not in p.stdout:
        wrong.append(p.stdout + p.stderr)
    small = row.name == "small_talk"  # else the window is large: the server is one's own all the same
    if hers and len(hers[0].raw) > (4800 if small else 20000):
        wrong.append(f"her first request has {len(hers[0].raw)} bytes")
    if len(first) > (6 if small else 13) or set(first) & {"subagent_status", "steer_subagent", "confirm_spawn"}:
        wrong.append(f"first {first}")
    if last[:len(first)] != first or "subagent_status" not in last or "steer_subagent" not in last:
        wrong.append(f"last {last}")
    if len(world.seen(row)) == before or names(world.seen(row)[before - 1]) != last:
        wrong.append(f"{len(world.seen(row)) - before} requests behind a restart, tools {last}")
    large = [prompt_of(r) for r in hers if prompt_of(r) > (4096 if small else 32768)]
    return wrong + ([f"requests of {large} tokens"] if large else [])


ROWS = [
    Row("small_4k", strict(4096, reads(3, submit)), gets=tells(4096), timed=True, requests=4, sent=never_refused(4096)),
    Row("small_4k_many", strict(4096, read_many(4)), gets=tells(4096), timed=True, requests=2, sent=never_refused(4096)),
    Row("small_8k", strict(8192, reads(9, fetch)), gets=tells(8192), timed=True, sent=shown_later, play=replayed,
        args=["--max-tokens", "300000"]),
    Row("small_unshown", strict(8192, unshown), gets=tells(8192), timed=True, requests=2, sent=called, play=replayed),
    Row("small_resume", strict(8192, reads(9, fetch)), gets=tells(8192), timed=True, play=resumed,
        args=["--max-tokens", "300000"]),
    Row("small_16k", strict(16384, reads(3, submit)), gets=tells(16384), timed=True, requests=4, sent=shown_at_once),
    Row("small_talk", delegate("small_talk"), gets=tells(4096), timed=True, play=talk, env={"AVA_MODEL": "local/small_talk"}),
    Row("small_talk_32k", delegate("small_talk_32k"), gets=tells(32768), timed=True, play=talk,
        env={"AVA_MODEL": "local/small_talk_32k"}),
]
