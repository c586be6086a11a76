"""A data root of its own with its daemon, and a model server of llama.cpp behind a proxy that keeps what is said."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

from proxy import Proxy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
BUILDS = [os.path.join(ROOT, build) for build in ("build-check/gcc/src", "build/src")]
AVA = os.environ.get("AVA") or next((b + "/cli/ava" for b in BUILDS if os.path.exists(b + "/cli/ava")), "ava")
AVAD = os.environ.get("AVAD") or os.path.join(os.path.dirname(os.path.abspath(AVA)), "../gateway/avad")
PATIENCE = 150  # seconds for one command
OPEN = []  # servers and worlds that are not closed yet


def until(seconds, what):
    """Wait for it; its value, or the last false one."""
    end = time.monotonic() + seconds
    while not (value := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Server:
    """One model in one window on `slots` slots; `proxy` is how ava is to reach it."""

    def __init__(self, python, model, context, slots=1, threads=1, log=None):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        with open(log or os.devnull, "ab") as out:
            self.process = subprocess.Popen([python, os.path.join(HERE, "serve.py"), model, str(self.port), str(context), str(slots),
                                             str(threads)], stdin=subprocess.PIPE, stdout=out, stderr=out)
        OPEN.append(self)
        if not until(60, self.answers):
            self.close()
            raise RuntimeError(f"the model server did not start with {os.path.basename(model)}")
        self.model = "local/" + os.path.basename(model).removesuffix(".gguf")
        self.proxy = Proxy(self.port)

    def answers(self):
        try:
            return self.get("/health")["status"] == "ok"
        except (OSError, ValueError):
            return False

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as r:
            return json.load(r)

    def post(self, path, body):
        ask = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(ask, timeout=600) as r:
            return json.load(r)

    def tokens(self, text):
        return len(self.post("/tokenize", {"content": text})["tokens"])

    def prompt_tokens(self, body):
        """As many as the model reads of a request, by the server's own template."""
        return self.tokens(self.post("/apply-template", {k: body[k] for k in ("messages", "tools") if k in body})["prompt"])

    def busy(self):
        return any(slot.get("is_processing") for slot in self.get("/slots"))

    def seconds(self):
        """Of the processor, so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        if self not in OPEN:
            return
        OPEN.remove(self)
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class World:
    """`url`: the address of the local model service; `env`: more of the environment, None takes a variable out."""

    def __init__(self, url, env=(), config=""):
        self.root, self.commands = tempfile.mkdtemp(prefix="ava-real-"), []
        OPEN.append(self)
        t = self.root
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("AVA", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "XDG_"))}
        self.env.update({"HOME": t + "/home", "AVA_DATA_ROOT": t + "/data", "XDG_CONFIG_HOME": t + "/config",
                         "XDG_DATA_HOME": t + "/share", "XDG_STATE_HOME": t + "/state", "XDG_CACHE_HOME": t + "/cache",
                         "XDG_RUNTIME_DIR": t + "/run", "AVA_AVAD": os.path.abspath(AVAD), "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
                         "AVA_LOCAL_BASE_URL": url + "/v1"})
        for key, value in dict(env).items():
            self.env.pop(key, None) if value is None else self.env.update({key: value})
        for name in ("home", "config", "config/ava", "share", "state", "cache", "run", "work"):
            os.mkdir(f"{t}/{name}", 0o700)
        self.work = t + "/work"
        if config:
            with open(t + "/config/ava/config.yaml", "w", encoding="utf-8") as f:
                f.write(config)

    def file(self, name, words):
        with open(f"{self.work}/{name}", "w", encoding="utf-8") as f:
            f.write(words)

    def start(self, *words, said=False):
        """A command that goes on by itself."""
        process = subprocess.Popen([AVA, *words], cwd=self.work, env=self.env, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.PIPE if said else subprocess.DEVNULL)
        self.commands.append(process)
        return process

    def ava(self, *words, said=None, patience=PATIENCE):
        """A command to its end; code 124: it did not end in time, and was interrupted."""
        process = self.start(*words, said=said is not None)
        try:
            out, err = process.communicate(said, timeout=patience)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            code = 124
        return subprocess.CompletedProcess(words, code, out, err)

    def run(self, task, *words, **more):
        """`ava run` to its end: what was printed, and the result ({}: none)."""
        done = self.ava("run", task, "--yes", "--json", *words, **more)
        try:
            return done, json.loads(done.stdout)
        except ValueError:
            return done, {}

    def runs(self):
        folder = self.root + "/data/runs"
        return os.listdir(folder) if os.path.isdir(folder) else []

    def results(self, words):
        """Of the runs whose task has these words."""
        found = []
        for run in self.runs():
            if any(words in line for line in self.lines(f"{self.root}/data/runs/{run}/messages.jsonl")[:3]):
                found += [json.loads(line) for line in self.lines(f"{self.root}/data/runs/{run}/result.json")]
        return found

    @staticmethod
    def lines(path):
        try:
            with open(path, encoding="utf-8") as f:
                return f.read().splitlines()
        except OSError:
            return []

    def amendments(self, first):
        """How often the conversation that begins with this message was changed by a line of its record."""
        paths = glob.glob(self.root + "/data/runs/*/messages.jsonl") + glob.glob(self.root + "/data/sessions/*/*.messages.jsonl")
        found = 0
        for path in paths:
            lines = [json.loads(line) for line in self.lines(path)]
            if any(m.get("content") == first for m in lines):
                found += sum("spec" in m or "replace" in m for m in lines[1:])
        return found

    def events_wrong(self):
        """What test/check_events.py has against the logs."""
        logs = glob.glob(self.root + "/data/logs/ava/*.jsonl") + glob.glob(self.root + "/data/logs/subagents/*.jsonl")
        done = subprocess.run([os.path.join(ROOT, "test/check_events.py"), *logs], capture_output=True, text=True, check=False)
        return None if done.returncode == 0 and logs else done.stdout + done.stderr or "there are none"

    def daemon(self):
        try:
            with open(self.root + "/data/ava.lock", encoding="ascii") as f:
                pid = int(f.read())
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                return pid if f.read().strip() == "avad" and not ended(pid) else None
        except (OSError, ValueError):
            return None

    def kill_daemon(self, how=signal.SIGKILL):
        pid = self.daemon()
        if pid:
            os.kill(pid, how)
            until(20, lambda: ended(pid))
        return pid

    def close(self):
        """Who waits for the daemon would start it once more, so they end first."""
        if self not in OPEN:
            return
        OPEN.remove(self)
        for process in self.commands:
            process.kill()
        self.kill_daemon(signal.SIGTERM)
        shutil.rmtree(self.root, ignore_errors=True)
