"""Two machines and a database: what both write comes in one stream on each, every line once and in the order of
its machine, also to who comes again with the id of the last one; lines that do not give the hash of their run do not
come; lines that a machine sends again come once.

    cluster_follow.py FOLDER SOURCE

The machines that did not exist here are rows: what they write is written by this test."""

import contextlib
import hashlib
import json
import sys
import threading

sys.dont_write_bytecode = True
import cluster_read as world  # noqa: E402
from cluster_read import check, done, until  # noqa: E402


class Stream(threading.Thread):
    """The frames of GET /events, as they come: (id, machine, line)."""

    def __init__(self, machine, query="", last=None):
        super().__init__(daemon=True)
        self.frames, self.connection = [], world.Unix(machine.root + "/ava.sock")
        self.connection.request("GET", "/api/v1/events" + query, headers={"Last-Event-ID": last} if last else {})
        self.answer = self.connection.getresponse()
        self.start()

    def run(self):
        frame = {}
        with contextlib.suppress(OSError, ValueError):
            for line in self.answer:
                name, _, value = line.rstrip(b"\n").partition(b": ")
                if name:
                    frame[name.decode()] = value
                elif "data" in frame:
                    self.frames.append((frame["id"].decode(), frame.get("machine", b"").decode(), frame["data"]))
                    frame = {}

    def of(self, run):
        return [f for f in self.frames if json.loads(f[2]).get("agentId") == run]

    def has(self, run):
        return until(lambda: any(b'"SubagentComplete"' in f[2] for f in self.of(run)))

    def stop(self):
        self.connection.sock.close()


def together(a, b):
    """Both logs in one stream, and again from the middle of it."""
    stream, plain = Stream(b), Stream(b, "?machines=own")
    until(lambda: b.api("GET", "/api/v1/health")[0] == 200)
    first = b.spawn("Wakes the stream.")
    check("an event of its own has the places of other machines in its id", stream.has(first) and
          until(lambda: " " in Stream_last(stream)), stream.frames[-1:])
    runs = [m.spawn(f"Task {i}.") for i in range(3) for m in (a, b)]
    for run in runs:
        stream.has(run)
    for i, run in enumerate(runs):
        owner, name = ((a, "machine-a"), (b, ""))[i % 2]
        got = stream.of(run)
        check(f"a run of {'the other' if name else 'this'} machine comes whole, each line once", [f[2] for f in got] ==
              owner.log(run).splitlines() and {f[1] for f in got} == {name}, len(got))
    check("who wants those of this machine has no other", not [f for r in runs[::2] for f in plain.of(r)] and
          plain.of(runs[1]) and all(f[0].isdigit() for f in plain.frames), plain.frames[-1:])
    every, wrong = list(stream.frames), []
    for at in range(len(every) - 1, 0, -max(1, len(every) // 12)):
        again = Stream(b, last=every[at - 1][0])
        want = set(map(key, every[at:]))
        until(lambda: want <= set(map(key, again.frames)), 5)
        got = list(map(key, again.frames))
        if not want <= set(got) or len(got) != len(set(got)) or set(got) & set(map(key, every[:at])):
            wrong.append((at, len(every), len(got)))
        again.stop()
    check("who comes again gets the rest, each line once", not wrong, wrong)
    again = Stream(b, last=every[0][0].split()[0])
    until(lambda: again.of(runs[-1]))
    run = a.spawn("New there.")
    check("an id that is a number is one of this machine, and others come from now on", again.has(run) and
          not again.of(runs[0]) and again.of(runs[1]), len(again.frames))
    only = Stream(b, "?machines=only&after=" + next(f[0] for f in every if f[1]).replace(" ", "%20"))
    check("others alone are given, too", until(lambda: only.of(run)) and not only.of(runs[1]) and
          all(f[1] for f in only.frames), only.frames[:1])
    for s in (stream, plain, again, only):
        s.stop()
    connection, answer = b.ask("GET", "/api/v1/events?after=1%20nowhere")
    with contextlib.closing(connection):
        check("a place that is none is refused", answer.status == 400 and b"nowhere" in answer.read())


def key(frame):
    return frame[1], json.loads(frame[2])["lsn"]


def Stream_last(stream):
    return stream.frames[-1][0] if stream.frames else ""


def lines_of(run, first, n):
    return b"".join(json.dumps({"timestamp": "2026-11-29T10:00:00.000Z", "lsn": i, "seq": i, "eventType": "ToolCall", "agentId": run,
                                "sessionId": "s", "traceId": "t", "userId": "u", "content": {"n": i}, "metadata": {}},
                               separators=(",", ":")).encode() + b"\n" for i in range(first, first + n))


def head_of(lines):
    head = bytes(32)
    for line in lines.splitlines(keepends=True):
        head = hashlib.sha256(head + line).digest()
    return head.hex()


class Row:
    """A machine and a run of it that stand in the database alone."""

    def __init__(self, w, node, run=None):
        self.w, self.node, self.run, self.tick = w, node, run, 0
        w.server.sql("insert into ava_node select '%s', 1, generation, 'infinity'::timestamptz, 't', 'h', '%s', 'v', 1 from ava_cluster"
                     % (node, node[:5]))

    def write(self, run, before, more, head=None):
        """Lines behind others, in a flush of their own."""
        self.tick += 1
        total = before + more
        self.w.server.sql(
            f"begin; insert into ava_run (run, node, epoch, head, head_hash, state) values ('{run}', '{self.node}', 1,"
            f" {len(total)}, '\\x{head or head_of(total)}', 0) on conflict (run) do update set node = excluded.node,"
            f" head = excluded.head, head_hash = excluded.head_hash;"
            f"insert into ava_chunk values ('{run}', 0, {len(total)}, '\\x{more.hex()}', '{self.node}', {self.tick})"
            " on conflict (stream, kind, head) do update set body = excluded.body, node = excluded.node,"
            " tick = excluded.tick; commit")


def rows(w, b):
    """What a stream makes of odd records."""
    one, two = Row(w, "one11111-node"), Row(w, "two22222-node")
    stream = Stream(b)
    good, bad, end = "S-11111111111111", "S-22222222222222", "S-33333333333333"
    texts = {r: [lines_of(r, 1, 2), lines_of(r, 3, 2), lines_of(r, 5, 1)] for r in (good, bad, end)}
    until(lambda: b.ends(b.spawn("Moves the stream.")) and "one11111:" in Stream_last(stream))

    def come(run, n):
        until(lambda: len(stream.of(run)) >= n, 5)
        return [f[2] for f in stream.of(run)]

    one.write(good, b"", texts[good][0])
    check("lines of a run come", b"\n".join(come(good, 2)) + b"\n" == texts[good][0], stream.of(good))
    one.write(bad, b"", texts[bad][0], "00" * 32)
    one.write(good, texts[good][0], texts[good][1])
    check("and what follows", len(come(good, 4)) == 4, stream.of(good))
    check("those that do not give the hash of their run do not", not stream.of(bad), stream.of(bad))
    one.write(good, texts[good][0], texts[good][1])
    one.write(end, b"", texts[end][0])
    come(end, 2)
    check("what is sent again comes once", len(stream.of(good)) == 4, stream.of(good))
    fewer = lines_of(good, 3, 1)
    two.write(good, texts[good][0], fewer)
    got = come(good, 5)
    check("where another machine goes on from fewer lines its lines come", got[4:] == fewer.splitlines() and
          stream.of(good)[4][1] == "two22", stream.of(good))
    two.write(good, texts[good][0] + fewer, texts[good][2])
    check("and are chained on", come(good, 6)[5:] == texts[good][2].splitlines(), stream.of(good))
    stream.stop()


def printed(a, b):
    """ava logs -f."""
    log = b.follow("logs", "-f", "--type", "SubagentSpawn,SubagentComplete")
    json_log = b.follow("logs", "-f", "-o", "json")
    out = []
    for process, to in ((log, out), (json_log, lines := [])):
        threading.Thread(target=lambda p=process, t=to: t.extend(iter(p.stdout.readline, "")), daemon=True).start()

    def follows():
        """A run that began once it is followed is in both."""
        run = a.spawn("Wakes ava logs.")
        a.ends(run)
        return until(lambda: all(any(run in line for line in to) for to in (out, lines)), 2)

    until(follows)
    runs = [b.spawn("Mine."), a.spawn("Of the other machine.")]
    for run in runs:
        until(lambda: sum(run in line for line in out) >= 2)
        until(lambda: any(run in line and '"SubagentComplete"' in line for line in lines))
    check("ava logs -f shows both machines, with the name of the other one", any(runs[1] in line and "machine-a" in line for line in out)
          and any(runs[0] in line and "machine-a" not in line for line in out), out)
    check("what is asked for holds for both", all(" SubagentSpawn " in line or " SubagentComplete " in line for line in out), out)
    got = [line.rstrip("\n") for line in lines if f'"agentId":"{runs[1]}"' in line]
    check("as JSON each line is as it was written, once", got == a.log(runs[1]).decode().splitlines(), len(got), got[:1], got[-1:],
          a.log(runs[1]).count(b"\n"))
    for process in (log, json_log):
        process.terminate()
        process.wait()


def moved(w, a, b):
    """A run whose machine dies amid it."""
    stream = Stream(b)
    b.ends(b.spawn("Moves the stream."))
    run = a.spawn("Goes on elsewhere.")
    until(lambda: a.status(run)["iteration"] >= 1)
    w.model.stands()
    before = a.log(run).splitlines()
    until(lambda: len(stream.of(run)) >= len(before))
    a.kill()
    until(lambda: b.status(run) and "machine" not in b.status(run))
    w.model.goes()
    b.ends(run)
    stream.has(run)
    got = stream.of(run)
    at = next((i for i, f in enumerate(got) if not f[1]), 0)
    check("a run that moves comes once, first from the one machine, then from the other", [f[2] for f in got] ==
          b.log(run).splitlines() and at > 0 and not any(f[1] for f in got[at:]), len(got), at, b.log(run).count(b"\n"))
    again = Stream(b, last=got[at - 1][0])
    rest = set(map(key, got[at:]))
    until(lambda: again.has(run))
    check("who comes again from before it moved gets all that follows", rest <= set(map(key, again.of(run))), len(rest), len(again.frames))
    stream.stop()
    again.stop()
    a.start()


def many(w, b):
    """More machines than there are places, most of which are gone."""
    w.server.sql("insert into ava_node select 'gone' || lpad(i::text, 4, '0') || '-node', 1, generation, '-infinity', 't', 'h', 'gone', "
                 "'v', 1 from ava_cluster, generate_series(1, 80) i")
    stream = Stream(b)
    until(lambda: b.ends(b.spawn("Moves the stream.")) and Stream_last(stream).count(":") >= 64)
    runs, rows = ["S-44444444444444", "S-55555555555555"], [Row(w, n) for n in ("new44444-node", "new55555-node")]
    for run, row in zip(runs, rows):
        row.write(run, b"", lines_of(run, 1, 2))
        check("a machine that comes is followed where many have gone", until(lambda r=run: len(stream.of(r)) == 2, 5), stream.of(run))
    last = stream.frames[-1][0]
    stream.stop()
    rows[0].write(runs[0], lines_of(runs[0], 1, 2), lines_of(runs[0], 3, 1))
    stream = Stream(b, last=last)
    check("also for who comes again", until(lambda: stream.of(runs[0])) and [f[2] for f in stream.of(runs[0])] ==
          lines_of(runs[0], 3, 1).splitlines(), stream.of(runs[0]))
    stream.stop()


def main():
    with world.World() as w:
        a, b = w.machines
        together(a, b)
        rows(w, b)
        printed(a, b)
        moved(w, a, b)
        many(w, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
