"""The world of a cluster's tests: a database, a model that keeps an account, and machines.

    with World(machines=3) as world:
        runs = world.spawn(20)
        world.machines[0].kill()
        world.wait_over(runs)
        wrong = world.judge()

A machine is an avad with its own home and data root, in a network namespace of its own where that is
allowed (network.py). postgres.py has the database, checks.py what must hold. Expects AVA, AVAD and
MOCK_MODELS in the environment; whatever is missing ends the test as skipped, with a word (`main`)."""

import collections
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

sys.dont_write_bytecode = True
import checks  # noqa: E402
import network  # noqa: E402
import postgres  # noqa: E402
from postgres import Missing, until  # noqa: E402

AVA, AVAD, MOCK = (os.environ.get(name, "") for name in ("AVA", "AVAD", "MOCK_MODELS"))
LEASE = 6  # seconds
GRACE = POLL = LEASE / 3  # of avad: as long as it takes between two renewals
PATIENCE = 120  # seconds for runs to end that are not kept from it
SKIP = 77
TURNS, LATENCY_MS = 6, 400


class Unix(http.client.HTTPConnection):
    """A connection to the socket of a daemon."""

    def __init__(self, path, seconds):
        super().__init__("ava", timeout=seconds)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Model:
    """mock-models; its log is the oracle. `words`: of a plan, which win."""

    def __init__(self, top, *words):
        self.log, self.port = os.path.join(top, "model.log"), network.free_port()
        self.read, self.seen = 0, collections.defaultdict(list)
        self.process = subprocess.Popen(
            [MOCK, "--quiet", "--with-parent", "--port", str(self.port), "--log", self.log, f"latency={LATENCY_MS}",
             "chunks=8", f"turns={TURNS}", "tool=http_get", f'args={{"url":"{self.page("%t")}"}}', *words],
            stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                break

    @staticmethod
    def url(port):
        return f"http://127.0.0.1:{port}"

    def page(self, turn):
        """What a run fetches in that turn; its task must name it."""
        return f"{self.url(self.port)}/local/health?turn={turn}"

    def stats(self):
        with urllib.request.urlopen(self.url(self.port) + "/stats") as answer:
            return json.load(answer)

    def requests(self):
        """All so far, by marker."""
        with open(self.log, "rb") as f:
            f.seek(self.read)
            lines = f.read()
        lines = lines[:lines.rfind(b"\n") + 1]
        self.read += len(lines)
        for request in checks.requests_of(lines.splitlines()):
            self.seen[request.marker].append(request)
        return self.seen

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Machine:
    """One avad. `holder`: the process that holds its network, or None."""

    def __init__(self, world, number, holder):
        self.number, self.name, self.holder = number, f"m{number}", holder
        self.folder = os.path.join(world.top, self.name)
        self.root = os.path.join(self.folder, "root")
        self.node = self.process = None
        port = world.relays.add(holder, world.model.port if holder else 0, f"127.0.0.{10 + number}")
        self.env = self.environment(world, port)

    def environment(self, world, port):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("AVA", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "PG"))}
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            env[name] = os.path.join(self.folder, name.lower())
            os.makedirs(env[name], mode=0o700)
        env.update(AVA_DATA_ROOT=self.root, AVA_AVAD=AVAD, AVA_RUNS_MAX="100", AVA_MODEL="anthropic/claude-haiku-4-5",
                   ANTHROPIC_API_KEY="cluster-key-0123456789", ANTHROPIC_BASE_URL=Model.url(port), NO_COLOR="1",
                   AVA_WEB_ALLOW_PRIVATE=f"127.0.0.1:{world.model.port}", AVA_DISK_FREE_MIN_MB="0", **world.settings)
        os.makedirs(os.path.join(env["XDG_CONFIG_HOME"], "ava"))
        with open(os.path.join(env["XDG_CONFIG_HOME"], "ava", "config.yaml"), "w", encoding="ascii") as f:
            f.write(world.config)
        if world.url:
            env.update(AVA_CLUSTER_URL=world.url, AVA_CLUSTER_LEASE=str(LEASE))
        return env

    def command(self, *words):
        """Inside of its network, and ended with the test."""
        return [*(network.enter(self.holder) if self.holder else ()), "setpriv", "--pdeathsig", "KILL", *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)

    def start(self, wait=True):
        with open(os.path.join(self.folder, "avad.out"), "a", encoding="utf-8") as out:
            self.process = subprocess.Popen(self.command(AVAD, "--service"), env=self.env, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        if wait:
            until(60, self.answers, f"{self.name} answers")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with code {self.process.returncode}: {self.said()}")
        try:
            return self.api("GET", "/api/v1/health", seconds=5)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def said(self):
        """What it wrote about itself, the newest at the end."""
        return (self.bytes("logs/avad.log") + self.bytes("../avad.out")).decode(errors="replace")[-4000:]

    def api(self, method, path, body=None, seconds=30):
        """(status, what the answer's JSON is)"""
        connection = Unix(os.path.join(self.root, "ava.sock"), seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As a person would; its exit code."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def bytes(self, path):
        """Of a file below its data root; none where it is not there."""
        try:
            with open(os.path.join(self.root, path), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return b""

    def log(self, run):
        return self.bytes(f"logs/subagents/{run}.jsonl")

    def status(self, run):
        """As its own API says; "" where it does not know the run."""
        code, answer = self.api("GET", f"/api/v1/runs/{run}")
        return answer["status"] if code == 200 else ""

    def verify(self):
        try:
            return json.loads(self.run(AVA, "logs", "verify", "--json").stdout)
        except ValueError:
            return None


class World:
    """`database`: "plain", "standby" (with one that streams from it; members reach the one that is the primary),
    "bouncer" (members go through pgbouncer), "wire" (over a long and bad line), "small" (its disk can be filled) or ""
    (none). `member`: the machines are a cluster's, else plain daemons, each for itself. `words`: of the model's plan;
    `settings`: of the machines, as variables, and `config`, their config.yaml; `before` is called with each machine that begins."""

    def __init__(self, machines=3, database="plain", member=True, words=(), settings=(), config="", before=None):
        self.top = tempfile.mkdtemp(prefix="ava-cluster-")
        os.chmod(self.top, 0o711)  # the database is another user's
        self.want, self.kind, self.member, self.words = machines, database, member, words
        self.settings, self.config, self.before = dict(settings), config, before
        self.machines, self.accepted, self.serial = [], {}, 0
        self.net = self.model = self.relays = self.database = self.standby = self.bouncer = self.wire = None
        self.url = ""

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def make(self):
        if self.member:
            needs_cluster()
        self.net = network.Network()
        self.model = Model(self.top, *self.words)
        self.relays = network.Relays(self.model.port)
        if self.kind:
            self.make_database()
        if self.member:
            between = self.bouncer or self.wire
            door = (between,) if between else (self.database, self.standby) if self.standby else (self.database,)
            self.url = postgres.url(*door)
        for number in range(1, self.want + 1):
            holder = self.net.machine(number) if self.net.hub else None
            self.machines.append(Machine(self, number, holder))
        if self.member:
            done = self.machines[0].run(AVAD, "--cluster", "init")
            assert done.returncode == 0, f"avad --cluster init: {done.stdout}{done.stderr}"
        for machine in self.machines:
            if self.before:
                self.before(self, machine)
            machine.start()
            if self.member:
                self.learn_node(machine)
        if self.wire:
            self.wire.bad = True

    def make_database(self):
        hub = network.enter(self.net.hub) if self.net.hub else []
        host = network.HUB if hub else "127.0.0.1"

        def port(fixed):
            return fixed if hub else network.free_port()

        self.database = postgres.Server(self.top, "primary", host, port(5432), hub, tls=bool(hub),
                                        room="160m" if self.kind == "small" else None)
        self.database.create()
        if self.kind == "standby":
            self.standby = self.database.copy(self.top, "standby", port(5433))
        elif self.kind == "bouncer":
            self.bouncer = postgres.Bouncer(self.top, self.database, port(6432))
            self.bouncer.start()
        elif self.kind == "wire":
            self.wire = network.Wire(self.net.hub, self.database, port(6433))

    def learn_node(self, machine):
        """A machine that came is the row that was not there."""
        known = {m.node for m in self.machines}

        def new():
            return [r["node"] for r in self.database.rows("select node from ava_node") if r["node"] not in known]

        machine.node = until(30, new, f"{machine.name} joins")[0]

    def __exit__(self, kind, why, trace):
        if kind is not None and not issubclass(kind, Missing):
            for machine in self.machines:
                print("\n".join(f"# {machine.name}: {line}" for line in machine.said().splitlines()[-12:]))
        self.close()

    def close(self):
        """All of it, machines first, even where the end of one fails."""
        with contextlib.ExitStack() as ends:
            ends.callback(self.leave)
            for one in (self.net, self.relays, self.model, self.database, self.standby, self.bouncer, self.wire, *self.machines):
                if one is not None:
                    ends.callback(one.stop)

    def leave(self):
        if os.environ.get("AVA_CLUSTER_KEEP"):
            print(f"# kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)

    def stop_walsender(self):
        """From here on the standby gets nothing, and the primary goes on to acknowledge. A test that stopped
        the receiver would lose nothing: its socket has what was sent."""
        pids = self.database.walsenders()
        assert pids, "no standby streams"
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def failover(self):
        """The standby is the primary from here on."""
        self.standby.promote()
        self.database, self.standby = self.standby, self.database

    # --- runs

    def spawn(self, count, machines=None):
        """Runs that may go on anywhere, by turns on the machines; their ids."""
        made = []
        for i in range(count):
            self.serial += 1
            machine = (machines or self.machines)[i % len(machines or self.machines)]
            made.append(self.spawn_at(machine, f"r{self.serial}"))
        return made

    def spawn_at(self, machine, marker):
        """One that must be accepted."""
        status, answer = self.ask(machine, marker)
        assert status == 201, f"{machine.name} refused a run: {status} {answer}"
        return answer["subagent_id"]

    def task(self, marker):
        """What a run is asked, found again by its marker."""
        pages = " ".join(map(self.model.page, range(1, TURNS + 1)))
        return {"task": f"See whether the service is well. marker {marker}: {pages}", "role": "web_crawler",
                "tools": ["http_get"]}

    def ask(self, machine, marker, seconds=30):
        """Post a run; what was accepted is remembered. Who got no answer asks again with the same marker."""
        status, answer = machine.api("POST", "/api/v1/runs", {
            **self.task(marker), "confirmed": True, "request_id": marker}, seconds)
        if status in (200, 201):
            self.accepted[answer["subagent_id"]] = marker
        return status, answer

    def states(self):
        """Run to its row of ava_run."""
        return {r["run"]: r for r in self.database.rows("select run, node, epoch, head, takes, state from ava_run")}

    def owner(self, run, states=None):
        node = (states or self.states())[run]["node"]
        return next(m for m in self.machines if m.node == node)

    def of(self, machine, runs, states=None):
        """Those that it owns and that go on."""
        states = states or self.states()
        return [r for r in runs if r in states and states[r]["node"] == machine.node and states[r]["state"] < checks.ENDED]

    def wait_asked(self, runs, iteration=2):
        """Until the model was asked for that iteration of each."""
        markers = {self.accepted[r] for r in runs}

        def asked():
            seen = self.model.requests()
            return all(any(q.iteration >= iteration for q in seen[m]) for m in markers)

        until(PATIENCE, asked, "every run is under way")

    def wait_over(self, runs, seconds=PATIENCE):
        """Until each has ended, for the cluster and for its owner."""
        states = {}

        def over():
            states.update(self.states())
            return not checks.over(runs, {r: s["state"] for r, s in states.items()})

        try:
            until(seconds, over, "every run ends")
        except AssertionError as e:
            left = [states.get(r, r) for r in runs if r not in states or states[r]["state"] < checks.ENDED]
            raise AssertionError(f"{e}: {left[:5]}") from None
        for run in runs:
            owner = self.owner(run, states)
            until(30, lambda: owner.status(run) not in ("", "running", "queued"), f"{owner.name} says that {run} has ended")

    def wait_taken(self, machine, runs, seconds):
        """Until others have what it owned; how long that took."""
        began = time.monotonic()
        until(seconds, lambda: not self.of(machine, runs), f"others take the runs of {machine.name}")
        return time.monotonic() - began

    # --- judgement

    def judge(self):
        """All that is wrong with runs that have all ended."""
        states, wrong = self.states(), []
        seen = self.model.requests()
        numbers = {run: row["state"] for run, row in states.items()}
        wrong += checks.accounted(self.accepted, numbers) + checks.over(self.accepted, numbers)
        chunks = collections.defaultdict(list)
        rows = self.database.rows("select stream, kind, head, body from ava_chunk")
        wrong += checks.once(rows)
        for row in rows:
            chunks[row["stream"]].append(row)
        for run, marker in self.accepted.items():
            if run in states:
                owner = self.owner(run, states)
                data, messages = owner.log(run), owner.bytes(f"runs/{run}/messages.jsonl")
                wrong += judge_log(run, data, seen[marker]) + checks.same(run, chunks[run], data)
                wrong += checks.same(f"messages of {run}", chunks[run], messages, checks.MESSAGES)
        wrong += [s for m in self.machines for s in checks.sealed(m.name, m.verify())]
        return wrong + self.judge_model()

    def judge_model(self):
        stats = self.model.stats()
        return [f"the model: {key} is {stats[key]}" for key in ("refused", "prefixBroken") if stats[key]]


def judge_log(run, data, requests):
    """All that is wrong with the log of a run that has ended, and what the model saw of it."""
    events, wrong = checks.parse(run, data)
    if wrong:
        return wrong
    return (checks.contiguous(run, events) + checks.whole(run, events) + checks.paired(run, events)
            + checks.doubled(run, events, requests))


def needs_cluster():
    done = subprocess.run([AVAD, "--help"], capture_output=True, text=True, check=False)
    if "--cluster" not in done.stdout + done.stderr:
        raise Missing("this avad is no member of clusters")


def rounds():
    """How often a scenario is played: the first argument, else 50 times with AVA_SOAK, else three."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 50 if os.environ.get("AVA_SOAK") else 3


def main(*tests):
    """Play functions that raise, or list what is wrong; `ok N - name` lines, the exit code."""
    failed = 0
    for number, test in enumerate(tests, 1):
        name, began = test.__name__, time.monotonic()
        try:
            wrong = test() or []
        except Missing as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
            if len(tests) == 1:
                return SKIP
            continue
        except Exception as why:  # a test that could not be played has failed, and the next one is played
            traceback.print_exc()
            wrong = [f"{type(why).__name__}: {why}"]
        for sentence in wrong[:20]:
            print(f"# {sentence}")
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {name} ({time.monotonic() - began:.1f} s)", flush=True)
    return 1 if failed else 0
