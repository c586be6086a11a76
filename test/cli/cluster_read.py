"""Two machines and a database: what one has is listed, read and followed on the other, while it works, after it
ended, and after its machine died; what somebody changed in the database is refused; without the database
each still answers for its own.

    cluster_read.py FOLDER SOURCE

AVA, AVAD and MOCK are the programs. The model stands still while a check looks at a run at work: no
check depends on how fast a machine is."""

import contextlib
import datetime
import glob
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

TOP, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
AVA, AVAD, MOCK = (os.path.abspath(os.environ[name]) for name in ("AVA", "AVAD", "MOCK"))
LEASE = 3
with open(os.path.join(SOURCE, "doc/api.yaml"), encoding="utf-8") as yaml:
    RUN = yaml.read().partition("\n    Run:\n")[2].partition("\n    Limits:\n")[0]
PATIENCE = 80  # seconds, on a machine that has much else to do
done = [0, 0]


def check(name, good, *why):
    done[0] += 1
    done[1] += not good
    print(f"{'ok' if good else 'not ok'} {done[0]} - {name}", flush=True)
    for line in [] if good else why:
        print(f"# {str(line)[:2000]}", flush=True)


def until(what, seconds=PATIENCE):
    """Its first true value, or the last one."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)


class Server:
    """PostgreSQL on a socket of its own; as root it is nobody's."""

    def __init__(self, folder):
        found = [os.environ.get("PG_BIN", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
        found = [b for b in found if os.path.exists(os.path.join(b, "postgres"))]
        if not found:
            sys.exit(77)
        self.bin, self.data, self.run = found[0], os.path.join(folder, "data"), os.path.join(folder, "s")
        os.makedirs(folder)
        self.who = []
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
            self.who = ["setpriv", "--pdeathsig", "KILL", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        self.url = f"host={self.run} user=ava dbname=postgres"
        self.call("initdb", "-D", self.data, "-U", "ava", "-A", "trust", "-N")
        subprocess.run([*self.who, "mkdir", self.run], check=True)
        self.process = None
        self.start()

    def call(self, program, *words):
        subprocess.run([*self.who, os.path.join(self.bin, program), *words], check=True, cwd="/",
                       stdout=subprocess.DEVNULL)

    def start(self):
        self.process = subprocess.Popen([*self.who, os.path.join(self.bin, "postgres"), "-D", self.data, "-k", self.run,
                                         "-c", "listen_addresses="], cwd="/", stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        until(lambda: self.sql("select 1") == "1")

    def sql(self, text):
        return subprocess.run([os.path.join(self.bin, "psql"), "-AtXq", self.url, "-c", text], capture_output=True,
                              text=True, check=False).stdout.strip()

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


class Model:
    def __init__(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", MOCK, "--quiet", "latency=100", "turns=3"], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                break
            if word == "plain":
                self.url = rest

    def stands(self):
        self.process.send_signal(signal.SIGSTOP)

    def goes(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.goes()
        self.process.kill()
        self.process.wait()


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("ava", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Machine:
    def __init__(self, name, url, model):
        self.folder = os.path.join(TOP, name)
        self.root = os.path.join(self.folder, "root")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("AVA", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "PG"))}
        for x in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            self.env[x] = os.path.join(self.folder, x.lower())
            os.makedirs(self.env[x], mode=0o700)
        self.env.update(AVA_DATA_ROOT=self.root, AVA_AVAD=AVAD, AVA_MODEL="anthropic/claude-haiku-4-5", NO_COLOR="1",
                        ANTHROPIC_API_KEY="cluster-key-0123456789", ANTHROPIC_BASE_URL=model.url,
                        AVA_DISK_FREE_MIN_MB="0", AVA_CLUSTER_URL=url, AVA_CLUSTER_LEASE=str(LEASE))
        self.process = None

    def start(self):
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", AVAD, "--service"], env=self.env, cwd=self.folder, stdout=out, stderr=out)
        assert until(self.serves), self.said()

    def serves(self):
        try:
            return self.api("GET", "/api/v1/health")[0] == 200
        except OSError:
            return False

    def said(self):
        with open(os.path.join(self.folder, "out"), encoding="utf-8") as f:
            return f.read()[-3000:]

    def ask(self, method, path, body=None):
        connection = Unix(os.path.join(self.root, "ava.sock"))
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def api(self, method, path, body=None):
        connection, answer = self.ask(method, path, body)
        with contextlib.closing(connection):
            return answer.status, json.loads(answer.read() or "null")

    def ava(self, *words):
        return subprocess.run([AVA, *words], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True, timeout=PATIENCE)

    def follow(self, *words):
        return subprocess.Popen([AVA, *words], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def spawn(self, task, **more):
        status, answer = self.api("POST", "/api/v1/runs", {"role": "researcher", "task": task, "confirmed": True, **more})
        assert status == 201, answer
        return answer["subagent_id"]

    def status(self, run):
        return self.api("GET", f"/api/v1/runs/{run}")[1]

    def list(self, query=""):
        return self.api("GET", "/api/v1/runs" + query)[1]

    def log(self, run, folder=""):
        with open(os.path.join(self.root, folder, "logs/subagents", run + ".jsonl"), "rb") as f:
            return f.read()

    def ends(self, run):
        return until(lambda: self.status(run).get("status") == "success")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()


class World:
    def __init__(self, names="ab", **env):
        self.names, self.env = names, env

    def __enter__(self):
        os.makedirs(TOP, exist_ok=True)
        os.chmod(TOP, 0o711)
        os.chmod(os.path.dirname(TOP), 0o711)
        self.server = Server(os.path.join(TOP, "pg"))
        self.model = Model()
        self.machines = [Machine(name, self.server.url, self.model) for name in self.names]
        made = subprocess.run([AVAD, "--cluster", "init"], env=self.machines[0].env, capture_output=True, text=True,
                              check=False)
        assert made.returncode == 0, made.stderr
        for i, machine in enumerate(self.machines):
            machine.env.update(self.env)
            machine.start()
            until(lambda want=i + 1: self.server.sql("select count(*) from ava_node") == str(want))
            # Both have the name of this host: the first one's is changed, so that it can be told.
            if i == 0:
                self.server.sql("update ava_node set name = 'machine-a'")
        return self

    def __exit__(self, kind, why, trace):
        for machine in self.machines:
            if kind is not None:
                print(machine.said())
            if machine.process.poll() is None:
                machine.kill()
        self.model.stop()
        self.server.stop()


def frames(answer):
    """Data lines of a stream, to its end."""
    return [line[6:].rstrip(b"\n") for line in answer if line.startswith(b"data: ")]


def at_work(w, a, b):
    """A run on the other machine, while it works; its id."""
    run = a.spawn("Look at the torn tail.")
    until(lambda: a.status(run)["tokens_used"] > 0)
    w.model.stands()
    until(lambda: a.log(run).count(b'"eventType":"InferStart"') > a.log(run).count(b'"eventType":"InferEnd"'))
    until(lambda: b.status(run).get("tokens_used") == a.status(run)["tokens_used"])
    known = set(re.findall(r"^        (\w+):", RUN, re.M))
    for row in (b.status(run), *b.list()["runs"]):
        check("doc/api.yaml names all that is told of it", set(row) <= known and "machine" in known, set(row) - known)
    rows = b.list()["runs"]
    check("a run at work is listed on the other machine, with the name of its own",
          [(r["subagent_id"], r.get("machine"), r["status"], r["task"]) for r in rows] ==
          [(run, "machine-a", "running", "Look at the torn tail.")], rows)
    mine, other = a.status(run), b.status(run)
    same = ("subagent_id", "trace_id", "role", "task", "model", "status", "tokens_used", "cost_cents", "iteration",
            "limits", "rights")
    check("and looked at, with its figures so far", all(mine[k] == other[k] for k in same) and
          other["machine"] == "machine-a" and other["tokens_used"] > 0 and "machine" not in mine, mine, other)
    figures = ("tokens_used", "cost_cents", "iteration")
    check("and in the list, too", all(mine[k] == rows[0][k] for k in figures), mine, rows)
    for what in ("logs?after=0&limit=1000&", "items?"):
        check(f"so are its {what.partition('?')[0]}", b.api("GET", f"/api/v1/{what}run={run}") ==
              a.api("GET", f"/api/v1/{what}run={run}") and run in str(b.api("GET", f"/api/v1/{what}run={run}")),
              b.api("GET", f"/api/v1/{what}run={run}"))
    status, answer = b.api("GET", f"/api/v1/runs/{run}/patch")
    check("its changes are not", status == 404, status, answer)
    status, answer = b.api("GET", f"/api/v1/runs/{run}/result")
    check("its result is not there yet", status == 202 and answer["machine"] == "machine-a", status, answer)
    check("what its model was asked is", b.api("GET", f"/api/v1/runs/{run}/messages") ==
          a.api("GET", f"/api/v1/runs/{run}/messages"))
    out = b.ava("logs", run, "-o", "json")
    check("ava logs reads it", out.returncode == 0 and out.stdout.encode() == a.log(run), out)
    check("so does ava trace", b.ava("trace", run).stdout == a.ava("trace", run).stdout != "", b.ava("trace", run))
    out = b.ava("ps")
    check("and ava ps shows it", run in out.stdout and "on machine-a: Look at" in out.stdout, out)
    return run


def head(log):
    """The chained hash of a log."""
    chained = bytes(32)
    for line in log.splitlines(keepends=True):
        chained = hashlib.sha256(chained + line).digest()
    return chained.hex()


def followed(w, a, b, run):
    """It is followed to its end, which is the same on both."""
    log, wait = b.follow("logs", "-f", run, "-o", "json"), b.follow("wait", run)
    connection, stream = b.ask("GET", f"/api/v1/runs/{run}/events")
    w.model.goes()
    out, waited = log.communicate(timeout=PATIENCE)[0], wait.communicate(timeout=PATIENCE)[0]
    check("ava logs -f follows to the end", log.returncode == 0 and out.encode() == a.log(run), out[-500:])
    check("ava wait hears of it", wait.returncode == 0 and run in waited, waited)
    with contextlib.closing(connection):
        check("the stream of events has each line once, and ends", frames(stream) == a.log(run).splitlines())
    check("its result is the same", b.api("GET", f"/api/v1/runs/{run}/result") ==
          a.api("GET", f"/api/v1/runs/{run}/result"))
    mine, other = a.status(run), b.status(run)
    check("and so is its status", other.pop("machine") == "machine-a" and mine == other, mine, other)
    listed, row = a.list("?all=1")["runs"][0], b.list("?all=1")["runs"][0]
    ends = [datetime.datetime.fromisoformat(r.pop("ended_at").replace("Z", "+00:00")) for r in (listed, row)]
    near = abs(ends[0] - ends[1]) < datetime.timedelta(seconds=1)  # one is of the event, one of the catalog's row
    check("and its row", near and row.pop("machine") == "machine-a" and row == listed, ends, row, listed)
    check("the copy has the bytes of the log", b.log(run, "cluster") == a.log(run))
    out = b.ava("logs", "verify", run)
    check("ava logs verify checks it, and names its machine", out.returncode == 0 and "of machine machine-a" in out.stdout and
          f"its {len(a.log(run))} bytes" in out.stdout, out)
    w.server.sql(f"update ava_run set head_hash = sha256(head_hash) where run = '{run}'")
    out = b.ava("logs", "verify", run)
    check("and sees that the database has another one", out.returncode == 1 and "not what its owner wrote" in out.stdout, out)
    w.server.sql(f"update ava_run set head_hash = '\\x{head(a.log(run))}' where run = '{run}'")
    check("which is mended", b.ava("logs", "verify", run).returncode == 0)
    out = b.ava("logs", "verify")
    check("without a run it is of this machine's logs", out.returncode == 0 and " file" in out.stdout, out)
    out = b.ava("result", run)
    check("ava result prints it", out.returncode == 0 and "Complete" in out.stdout, out)


def paged(a, b):
    """Pages of both machines' runs have each once."""
    runs = [m.spawn(f"Task {i}.", tags=["paged"]) for i in range(4) for m in (a, b)]
    for i, run in enumerate(runs):
        (a, b)[i % 2].ends(run)
    for sort in ("started", "tokens", "cost", "time"):
        for m in (a, b):
            got, after = [], ""
            while True:
                page = m.list(f"?all=1&tag=paged&limit=3&sort={sort}{after}")
                got += page["runs"]
                if not page["next"]:
                    break
                after = "&before=" + page["next"]
            figures = [r["started_at"] if sort == "started" else r["tokens_used"] if sort == "tokens"
                       else r["cost_cents"] if sort == "cost" else r["elapsed_seconds"] for r in got]
            check(f"by {sort} each is given once, in order", sorted(r["subagent_id"] for r in got) == sorted(runs) and
                  figures == sorted(figures, reverse=True), figures)
    count = b.list("?all=1&tag=paged&counts=1")["counts"]
    check("and all are counted", count["total"] == 8 and count["by_status"] == {"success": 8}, count)
    rows = b.list(f"?ids={runs[0]},{runs[1]}")["runs"]
    check("two are found by their ids", {r["subagent_id"] for r in rows} == set(runs[:2]), rows)


def forged(w, a, b):
    """What is not what the owner wrote is refused, and taken once it is right."""
    run, other = a.spawn("To be forged."), a.spawn("To be forged, too.")
    a.ends(run), a.ends(other)
    until(lambda: w.server.sql(f"select count(*) from ava_run where run in ('{run}','{other}') and state = 9") == "2")
    w.server.sql("create table kept as select * from ava_chunk; create table kept_file as select * from ava_file")
    w.server.sql(f"update ava_chunk set body = convert_to(replace(convert_from(body, 'UTF8'), 'forged', 'FORGED'), 'UTF8')"
                 f" where stream = '{run}' and kind = 0")
    w.server.sql(f"update ava_file set body = convert_to(replace(convert_from(body, 'UTF8'), 'Done', 'None'), 'UTF8')"
                 f" where run = '{other}'")
    status, answer = b.api("GET", f"/api/v1/runs/{run}")
    check("a changed line is refused", status == 500 and "not what its owner wrote" in answer["error"]["message"],
          status, answer)
    check("and not kept", not os.path.exists(os.path.join(b.root, "cluster/logs/subagents", run + ".jsonl")))
    out = b.ava("logs", "verify", run, "--json")
    found = json.loads(out.stdout)
    check("so does ava logs verify", out.returncode == 1 and not found["ok"] and found["broken"] == 1 and
          "not what its owner wrote" in found["findings"][0]["what"], out)
    out = b.ava("logs", run)
    check("ava logs says so", out.returncode == 1 and "not what its owner wrote" in out.stderr and not out.stdout, out)
    status, answer = b.api("GET", f"/api/v1/runs/{other}/result")
    check("so is a changed result", status == 500 and "not what its owner wrote" in answer["error"]["message"],
          status, answer)
    w.server.sql(f"delete from ava_chunk where stream = '{run}' and kind = 0; insert into ava_chunk select * from kept"
                 f" where stream = '{run}' and kind = 0; delete from ava_file where run = '{other}';"
                 f"insert into ava_file select * from kept_file where run = '{other}'")
    check("what is right again is read", b.status(run).get("status") == "success" and
          b.api("GET", f"/api/v1/runs/{other}/result")[0] == 200, b.status(run))
    with open(os.path.join(b.root, "cluster/logs/subagents", run + ".jsonl"), "r+b") as f:
        f.seek(200)
        f.write(b"#")
    shutil.rmtree(os.path.join(b.root, "cluster/runs", run))
    b.stop()
    b.start()
    check("a copy that was damaged is made anew", b.status(run).get("status") == "success" and
          b.log(run, "cluster") == a.log(run), b.status(run))
    status, answer = b.api("GET", "/api/v1/runs/S-00000000000000")
    check("a run that nobody has is not found", status == 404, status, answer)


def killed(w, a, b, old):
    """The owner dies: what it had is read, what is bound to it waits, what is not goes on here."""
    run = a.spawn("Goes on elsewhere.")
    bound = a.spawn("Stays here.", cwd=a.folder)
    until(lambda: min(a.status(r)["iteration"] for r in (run, bound)) >= 1)
    w.model.stands()
    until(lambda: w.server.sql(f"select count(*) from ava_run where run in ('{run}','{bound}') and head > 0") == "2")
    fresh = until(lambda: [r for r in b.list()["runs"] if r["subagent_id"] == bound])
    check("both are listed before", bool(fresh) and fresh[0]["machine"] == "machine-a", fresh)
    stale = a.log(run)
    a.kill()
    check("a dead machine's result is read", b.api("GET", f"/api/v1/runs/{old}/result")[0] == 200)
    check("also its log", b.log(old, "cluster") == a.log(old))
    waits = until(lambda: b.status(bound).get("status") == "queued" and b.status(bound))
    check("a run that is bound to it waits for it", waits and waits["current_activity"] == "waits for machine machine-a", b.status(bound))
    until(lambda: "machine" not in b.status(run))
    w.model.goes()
    check("another one ends here", b.ends(run), b.status(run))
    w.model.stands()
    a.start()
    moved = until(lambda: "machine" in a.status(run) and a.status(run))
    check("the machine that had it first says who has it now", moved and moved["status"] == "success", a.status(run))
    rows = [r for r in a.list("?all=1")["runs"] if r["subagent_id"] == run]
    with open(os.path.join(a.root, "logs/subagents", run + ".jsonl"), "wb") as f:
        f.write(stale)
    out = a.ava("logs", run, "-o", "json")
    check("what it had before is not shown as the run", out.stdout.encode() == b.log(run) and
          a.status(run).get("machine") == moved["machine"], out.stdout[-300:], a.status(run))
    check("and lists it once", len(rows) == 1 and rows[0]["status"] == "success" and "machine" in rows[0], rows)
    w.model.goes()
    check("what waited for it ends there", a.ends(bound), a.status(bound))


def unread(w, b):
    """A connection for reading that is not there keeps nothing from working."""
    b.stop()
    b.env["AVA_CLUSTER_READ_URL"] = f"host={TOP}/nowhere user=ava"
    b.start()
    run = b.spawn("Without reading.")
    check("without a connection for reading runs end", b.ends(run), b.status(run))
    check("and it is said that others are not shown", "database" in b.list().get("others", ""), b.list())
    b.stop()
    del b.env["AVA_CLUSTER_READ_URL"]
    b.start()
    check("with one they are", until(lambda: "others" not in b.list()))


def alone(w, a, b, old):
    """Without the database."""
    run, new = b.spawn("Of this machine."), a.spawn("Of the other one.")
    b.ends(run), a.ends(new)
    until(lambda: w.server.sql(f"select count(*) from ava_run where run in ('{run}','{new}') and state = 9") == "2")
    w.server.stop()
    began = time.monotonic()
    answer = b.list("?all=1")
    lasted = time.monotonic() - began
    check("without the database the own runs are listed within a bound", lasted < 10 and
          run in [r["subagent_id"] for r in answer["runs"]], lasted)
    check("with a sentence that others are not", "database" in answer.get("others", ""), answer.get("others"))
    out = b.ava("ps", "-a")
    check("which ava ps says", out.returncode == 0 and run in out.stdout and "runs of other machines" in out.stderr, out)
    check("an own run answers", b.status(run)["status"] == "success")
    check("so does the copy of an ended one", b.api("GET", f"/api/v1/runs/{old}/result")[0] == 200 and
          b.status(old)["machine"] == "machine-a", b.status(old))
    status, answer = b.api("GET", f"/api/v1/runs/{new}")
    check("any other one is an error that says why", status == 503 and "database" in answer["error"]["message"],
          status, answer)
    w.server.start()
    check("it is back with the database", until(lambda: b.api("GET", f"/api/v1/runs/{new}")[0] == 200))


def pruned(w, a, b):
    """What a machine prunes goes from the database, and the copies of others with their own pruning."""
    until(lambda: w.server.sql("select count(*) from ava_run where state < 9") == "0")
    mine = a.api("GET", "/api/v1/cluster")[1]["cluster"]["node"]
    for machine in (a, b):  # it would compare those that have just ended with the database
        machine.stop()
        machine.start()
    until(lambda: all(m.api("GET", "/api/v1/cluster")[1]["cluster"]["state"] == "member" for m in (a, b)))
    others = w.server.sql(f"select count(*) from ava_run where node <> '{mine}'")
    w.server.sql("insert into ava_run (run, node, epoch, head, head_hash, state) values ('S-00000000000001', 'left', 1, 0, '', 9);"
                 "insert into ava_spec (run, request_id, grp, place, line, created) values ('S-00000000000001', '', '', 'here',"
                 " '', now() - interval '1 day')")
    copies = os.path.join(b.root, "cluster/logs/subagents")
    check("there are copies before", os.listdir(copies) != [], os.listdir(copies))
    time.sleep(1.1)  # all of it is to be older than a second
    ask = {"older_than_seconds": 1}
    at = f"select coalesce(max(tick), 0) from ava_chunk where kind = 0 and node = '{mine}'"
    last = int(w.server.sql(at))
    status, answer = a.api("POST", "/api/v1/prune", ask)
    check("a machine prunes", status == 200 and len(answer["runs"]) > 2, status, answer)
    rows = f"from ava_spec join ava_run using (run) where node {{}} ('{mine}', 'left')"
    left = until(lambda: w.server.sql("select count(*) " + rows.format("in")) == "0")
    check("its runs go from the database, and those of a machine that left", left)
    check("those of others stay", w.server.sql("select count(*) " + rows.format("not in")) == others != "0")
    rest = [w.server.sql(f"select count(*) from {table} where {column} <> '' and {column} not in (select run from ava_spec)")
            for table, column in (("ava_chunk", "stream"), ("ava_file", "run"))]
    check("of them all is left that one counts on from", rest == ["1", "0"], rest)
    b.stop()
    b.start()
    a.stop()
    a.start()
    a.ends(a.spawn("Behind it."))
    check("and a machine counts on", until(lambda: int(w.server.sql(at)) > last, 5), last, w.server.sql(at))
    there = [r["subagent_id"] for r in b.list("?all=1")["runs"] if "machine" in r]
    check("the other machine lists them no more", not set(there) & set(answer["runs"]), there)
    gone = next(r for r in answer["runs"] if os.path.exists(os.path.join(copies, r + ".jsonl")))
    check("though it has a copy", b.api("GET", f"/api/v1/runs/{gone}/result")[0] == 200)
    status, answer = b.api("POST", "/api/v1/prune", ask)
    check("and loses its copies when it prunes", status == 200 and os.listdir(copies) == [] and
          os.listdir(os.path.join(b.root, "cluster/runs")) == [], os.listdir(copies))
    came = [r for r in answer["runs"] if os.path.exists(os.path.join(a.root, "logs/subagents", r + ".jsonl"))]
    check("one of its runs came from the other machine", until(lambda: len(came) == 1 and w.server.sql(
        f"select count(*) from ava_spec where run = '{came[0]}'") == "0"), came)
    status, answer = b.api("GET", f"/api/v1/runs/{gone}/result")
    check("of a run that nobody has any more it says so", status == 404, status, answer)
    a.stop()  # B has pruned a run that A began
    a.start()
    until(lambda: a.api("GET", "/api/v1/cluster")[1]["cluster"]["state"] == "member")
    runs = a.api("GET", "/api/v1/health")[1]["runs"]
    check("its first machine does not begin a run again that another one pruned", runs["running"] == 0, runs, a.said())


def main():
    with World() as w:
        a, b = w.machines
        run = at_work(w, a, b)
        followed(w, a, b, run)
        paged(a, b)
        forged(w, a, b)
        killed(w, a, b, run)
        w.server.sql("update ava_node set name = 'machine-a' where node = (select node from ava_run where run = "
                     f"'{run}')")
        unread(w, b)
        alone(w, a, b, run)
        pruned(w, a, b)
    print(f"# {done[0]} checks, {done[1]} failed")
    return 1 if done[1] else 0


if __name__ == "__main__":
    sys.exit(main())
