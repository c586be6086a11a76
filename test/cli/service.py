"""service.py: a manager of services, as systemd is one to avad: it holds sockets, and is told."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

AVA, ROOT, T = os.environ["AVA"], os.environ["AVA_DATA_ROOT"], os.environ["T"]
SOCK = os.path.join(ROOT, "ava.sock")
PATIENCE = 60


def check(name, good, more=""):
    print(f"{'ok' if good else 'not ok'} {name}")
    if not good:
        print(f"# {more}")


def until(ready, what):
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def manager(name):
    """A socket that is told; an abstract name begins with @."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind("\0" + name[1:] if name[0] == "@" else name)
    s.settimeout(PATIENCE)
    return s


def start(held=(), told=None):
    """`ava serve`, with sockets from descriptor 3 on."""
    def hand_over():
        high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100) for s in held]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)
        os.closerange(3 + len(held), 200)

    env = {**os.environ, **({"NOTIFY_SOCKET": told} if told else {})}
    script = f'LISTEN_PID=$$ LISTEN_FDS={len(held)} exec "$AVA" serve'
    return subprocess.Popen(["sh", "-c", script], env=env, close_fds=False, preexec_fn=hand_over,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(daemon):
    daemon.send_signal(signal.SIGTERM)
    return daemon.wait(PATIENCE)


def ask(path):
    """GET over a connection that may be made before there is a daemon; the answer comes then."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect(path)
    s.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return s


def answer(s):
    data = b""
    while piece := s.recv(65536):
        data += piece
    return json.loads(data.partition(b"\r\n\r\n")[2])


def pid_at(path):
    try:
        return answer(ask(path))["pid"]
    except OSError:
        return 0


def listen(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(16)
    os.chmod(path, 0o600)
    return s


# It is told: ready once it serves, then that the loop turns, and that it stops.
for name in (os.path.join(T, "notify"), f"@ava-test-{os.getpid()}"):
    told = manager(name)
    daemon = start(told=name)
    check("it says that it is ready", told.recv(100) == b"READY=1")
    check("and serves then", answer(ask(SOCK))["pid"] == daemon.pid)
    check("its loop says that it turns", told.recv(100) == b"WATCHDOG=1" and told.recv(100) == b"WATCHDOG=1")
    daemon.send_signal(signal.SIGTERM)
    words = told.recv(100)
    while words == b"WATCHDOG=1":
        words = told.recv(100)
    check("it says that it stops", words == b"STOPPING=1" and daemon.wait(PATIENCE) == 0, words)

# A daemon that a command of a service starts tells nothing of itself.
subprocess.run([AVA, "ps", "-a"], env={**os.environ, "NOTIFY_SOCKET": name}, check=True, stdout=subprocess.DEVNULL)
subprocess.run([AVA, "stop"], check=True, stdout=subprocess.DEVNULL)
told.setblocking(False)
try:
    words = told.recv(100)
except BlockingIOError:
    words = b""
check("a daemon that a command starts is no service", words == b"", words)

# Sockets are held: who asks before there is a daemon is answered by it, also by the next one.
held, page = listen(SOCK), socket.create_server(("127.0.0.1", 0))
inode = os.stat(SOCK).st_ino
first = ask(SOCK)
daemon = start([page, held])
check("who asked before it started is answered", answer(first)["pid"] == daemon.pid)
check("the order of the sockets is nothing to it", answer(ask(SOCK))["web"]["url"].endswith(f":{page.getsockname()[1]}"))
status = subprocess.run([AVA, "status", "--json"], capture_output=True, text=True, check=False)
check("commands find it", status.returncode == 0, status.stderr)
with open(f"/proc/{daemon.pid}/fdinfo/4", encoding="ascii") as info:
    check("no program of its own gets the socket", int(re.search(r"flags:\s*(\d+)", info.read())[1], 8) & os.O_CLOEXEC)
check("it stops in order", stop(daemon) == 0)
check("and leaves the socket", os.stat(SOCK).st_ino == inode)
late = ask(SOCK)
daemon = start([page, held])
check("who asked between two is answered by the second", answer(late)["pid"] == daemon.pid)
stop(daemon)

# One that was started by hand puts its own in that place, and leaves it when it is killed.
daemon = start()
until(lambda: os.path.exists(SOCK) and os.stat(SOCK).st_ino != inode, "one by hand")
daemon.kill()
daemon.wait()
daemon = start([page, held])
until(lambda: daemon.poll() is not None or pid_at(SOCK) == daemon.pid, "the service behind it")
check("a held socket that nobody reaches is not used", pid_at(SOCK) == daemon.pid)
stop(daemon)
held.close()

# One that is held elsewhere is of no use: commands ask in the data root.
other = listen(os.path.join(T, "other.sock"))
daemon = start([other])
until(lambda: pid_at(SOCK) == daemon.pid, "its own socket")
check("where another one is held it makes its own", pid_at(SOCK) == daemon.pid)
with open(os.path.join(ROOT, "logs/avad.log"), encoding="utf-8") as log:
    check("and says so", "is not that of its data root" in log.read())
stop(daemon)
check("its own goes with it", not os.path.exists(SOCK))

# The runtime folder leads to the socket of the usual data root, which stays where cron finds it.
run = os.environ["XDG_RUNTIME_DIR"]
os.makedirs(run, mode=0o700, exist_ok=True)
LINK, OTHER = os.path.join(run, "ava/ava.sock"), SOCK
daemon = start()
until(lambda: os.path.exists(OTHER), "its socket")
check("a root of one's own has no link", answer(ask(OTHER))["pid"] == daemon.pid and not os.path.lexists(LINK))
stop(daemon)
del os.environ["AVA_DATA_ROOT"]
usual = os.path.join(os.environ["XDG_DATA_HOME"], "ava/ava.sock")
daemon = start()
until(lambda: os.path.lexists(LINK), "the link")
check("the runtime folder leads to the usual one", answer(ask(LINK))["pid"] == daemon.pid and os.readlink(LINK) == usual)
check("a command without the folder finds it", subprocess.run(["env", "-u", "XDG_RUNTIME_DIR", AVA, "ps"], stdout=subprocess.DEVNULL, check=False).returncode == 0)
stop(daemon)
check("the link goes with it", not os.path.lexists(LINK))
daemon = start()
until(lambda: os.path.lexists(LINK), "the link")
daemon.kill()
daemon.wait()
daemon = start()
until(lambda: pid_at(usual) == daemon.pid, "the next daemon")
check("one that was left leads to the next daemon", answer(ask(LINK))["pid"] == daemon.pid)
shutil.rmtree(run)
check("a folder that goes at logout takes nothing along",
      subprocess.run([AVA, "ps"], stdout=subprocess.DEVNULL, check=False).returncode == 0 and stop(daemon) == 0)
os.makedirs(run)
os.chmod(run, 0o755)
daemon = start()
until(lambda: pid_at(usual) == daemon.pid, "its socket")
check("a folder that is open to others gets no link", not os.path.lexists(LINK))
stop(daemon)
