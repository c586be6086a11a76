"""A bot of Telegram that two machines have the token of: one listens, and the other begins when that one is cut
off, killed, stopped or frozen; never do two listen at once, by the account of the service. Who was paired on the one is
heard by the other."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
import network  # noqa: E402
import world  # noqa: E402
from world import AVA, AVAD, GRACE, LEASE, POLL, World, until  # noqa: E402

TOKEN, ME = "4711:AAcluster-door-0123456789abcdefghijk", 77
BOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cli/telegram_bot.py")


class Bot:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, BOT, TOKEN], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.relays = network.Relays(self.port)

    def give(self, _, machine):
        """The token, and a way to the service."""
        port = self.relays.add(machine.holder, 0, f"127.0.0.{10 + machine.number}")
        folder = os.path.join(machine.env["XDG_CONFIG_HOME"], "ava")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "env"), "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        with open(os.path.join(folder, "config.yaml"), "w", encoding="utf-8") as f:
            f.write(f"telegram:\n  url: http://127.0.0.1:{port}\n  pace_ms: 0\n")

    def ask(self, what, **o):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/test/{what}", json.dumps(o).encode()) as answer:
            return json.load(answer)

    def texts(self):
        return [m["text"] for m in self.ask("messages")["messages"]]

    def polls(self):
        """(begin, end or None, number of the machine), in order."""
        return [(c["at"], c.get("until"), int(c["by"].rpartition(".")[2]) - 10) for c in self.ask("messages")["calls"]
                if c["method"] == "getUpdates"]

    def stop(self):
        self.relays.stop()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def state(machine):
    return machine.api("POST", "/api/v1/doors/telegram", {})[1]


def is_in(machine, wanted):
    """Its door is in that state, and it knows whose it is; a machine may be starting itself again."""
    try:
        how = state(machine)
        return how["state"] == wanted and how["machine"]
    except (OSError, http.client.HTTPException):
        return False


def listens(machine):
    return is_in(machine, "serving")


def both(polls):
    """Polls of two machines at the same time."""
    return [f"machine {b[2]} asked {b[0] - a[0]:.3f} s after the poll of machine {a[2]} began, which had not ended"
            for i, a in enumerate(polls) for b in polls[i + 1:] if a[2] != b[2] and (a[1] is None or a[1] > b[0])]


def heard(bot, by):
    """A person says something; by whom it was fetched."""
    n = len(bot.texts())
    bot.ask("say", **{"from": ME, "text": "/runs"})
    until(20, lambda: len(bot.texts()) > n, "the person is answered")
    last = bot.polls()[-1][2]
    return [] if last == by.number else [f"machine {last} fetched it, not {by.name}"]


def taken(bot, by, since):
    """Until that machine asks; what is wrong with how long it took since then."""
    def asked():
        return [p[0] for p in bot.polls() if p[0] > since and p[2] == by.number]

    took = until(60, asked, f"{by.name} asks")[0] - since
    print(f"# {by.name} asked {took:.1f} s later", flush=True)
    return [f"{by.name} asked {took:.1f} s later"] if took > LEASE + GRACE + 2 * POLL + 2 + os.getloadavg()[0] else []


def play(w, bot):
    until(30, lambda: any(map(listens, w.machines)), "one listens")
    first = next(filter(listens, w.machines))
    other = next(m for m in w.machines if m is not first)
    until(30, lambda: is_in(other, "elsewhere"), "the other one knows who does")
    code, answer = other.api("POST", "/api/v1/doors/telegram", {"pair": True})
    wrong = [] if code == 409 and state(other)["machine"] in answer["error"]["message"] else [f"pair: {code} {answer}"]
    said = json.loads(first.run(AVAD, "--cluster", "status").stdout)["doors"]
    if [d["name"] for d in said] != ["telegram:4711"] or "telegram:4711 is served by" not in first.run(AVA, "cluster", "status").stdout:
        wrong.append(f"status: {said}")
    bot.ask("say", **{"from": ME, "text": state_code(first)})
    until(20, lambda: any("Paired" in t for t in bot.texts()), "the person is paired")
    until(20, lambda: state(other)["paired"], "the other one hears who is paired")
    if w.net.hub:
        w.net.cable(first.number, False)
        wrong += taken(bot, other, time.monotonic()) + heard(bot, other)
        w.net.cable(first.number, True)
        until(60, lambda: is_in(first, "elsewhere"), "it is a member again")
        wrong += heard(bot, other) + both(bot.polls())
        first, other = other, first
    first.kill()
    wrong += taken(bot, other, time.monotonic()) + heard(bot, other)
    first.start()
    until(30, lambda: is_in(first, "elsewhere"), "it comes back and does not listen")
    other.stop()
    wrong += taken(bot, first, time.monotonic()) + heard(bot, first)
    wrong += both(bot.polls()) + frozen(w, bot, first, other)
    return wrong + bot.ask("messages")["wrong"]


def frozen(w, bot, first, other):
    """It stands still for longer than its lease: what it asked before it may not take back, but it asks no more."""
    other.start()
    until(30, lambda: is_in(other, "elsewhere"), "the other one is back")
    first.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    wrong = taken(bot, other, stopped)
    first.signal(signal.SIGCONT)
    until(60, lambda: is_in(first, "elsewhere"), "it starts itself again")
    wrong += heard(bot, other)
    late = [p for p in bot.polls() if p[2] == first.number and p[0] > stopped]
    return wrong + [f"{first.name} asked after it was frozen"] * bool(late) + left(bot, other, first)


def left(bot, leaves, stays):
    """The one that listens leaves the cluster."""
    since = time.monotonic()
    out = leaves.run(AVA, "cluster", "leave")
    if out.returncode != 0:
        return [f"{leaves.name} does not leave: {out.stdout}{out.stderr}"]
    leaves.process.wait(30)
    return taken(bot, stays, since) + heard(bot, stays) + both([p for p in bot.polls() if p[1] is None or p[1] > since])


def state_code(machine):
    return machine.api("POST", "/api/v1/doors/telegram", {"pair": True})[1]["code"]


def doors():
    bot = Bot()
    try:
        with World(machines=2, before=bot.give) as w:
            return play(w, bot)
    finally:
        bot.stop()


if __name__ == "__main__":
    sys.exit(world.main(doors))
