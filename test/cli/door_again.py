"""The door for browsers when the daemon comes back, and who had the port meanwhile; played by test_door.sh."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import page_key
from api import ROOT, ava, check, kill_daemon, until
from page_key import Key

AVAD = os.environ["AVAD"]


def start(*command, **more):
    """A daemon that answers."""
    p = subprocess.Popen(command or [AVAD], stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr, **more)

    def serves():
        with open(os.path.join(ROOT, "ava.lock"), encoding="ascii") as f:
            return f.read().strip() == str(p.pid) and ava("ps").returncode == 0

    until(serves)
    return p


def stop(p, how=signal.SIGTERM):
    p.send_signal(how)
    p.wait()


def dashboard():
    return ava("dashboard", "--no-open").stdout


def squat(port, address="127.0.0.1"):
    """Another program has the port: what it is sent."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen()
    s.settimeout(60)
    return s


kill_daemon()
os.remove(os.path.join(ROOT, "web.json"))
daemon = start()
url = dashboard()
browser = page_key.browser(url)
tab = browser.hello()
port = tab.port
check("a tab is signed in", tab.status("GET", "/api/v1/health") == 200)

# The daemon goes, and comes back where it was.
signed = tab.sign("GET", "/api/v1/health"), tab.sign("POST", "/api/v1/dashboard", '{"sign_out":true}')
greeting = browser.greeting()
stop(daemon, signal.SIGKILL)
daemon = start()
check("what was signed for the daemon of before is nothing to this one",
      [page_key.ask(port, "GET", "/api/v1/health", Authorization=signed[0])[0],
       page_key.ask(port, "POST", "/api/v1/dashboard", '{"sign_out":true}', Authorization=signed[1])[0]] == [401] * 2)
check("a tab that is open asks for its challenge and goes on", isinstance(tab.hello(), Key) and tab.status("GET", "/api/v1/health") == 200)
check("what a browser keeps ended with the daemon, whoever uses it", browser.hello(greeting=greeting) == 403 and browser.hello() == 403)

# Whoever signs in anew is not led to an address that another one may have had meanwhile.
again = page_key.tab(dashboard())
check("a sign-in is at another address then", again.port != port and again.status("GET", "/api/v1/health") == 200, again.port, port)
check("and nobody is signed in at the old one", until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) != 0))
check("the next one is where that was", page_key.tab(dashboard()).port == again.port)

# A page believes that the port is the daemon's while its stream is open: that ends before the port is free.
stream = socket.create_connection(("127.0.0.1", again.port), 60)
stream.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{again.port}\r\nAuthorization: {again.sign('GET', '/api/v1/events')}\r\n\r\n".encode())
begun = stream.recv(65536)
half = socket.create_connection(("127.0.0.1", again.port), 60)  # a request that never comes whole: it is waited for
half.sendall(f"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1:{again.port}\r\nContent-Length: 99\r\n\r\n".encode())
check("a request is under way", page_key.ask(again.port, "GET", "/")[0] == 200)
daemon.send_signal(signal.SIGTERM)
until(lambda: socket.socket().connect_ex(("127.0.0.1", again.port)) != 0)
stream.settimeout(0.5)
try:
    while rest := stream.recv(65536):
        pass
except TimeoutError:
    rest = b"it goes on"
check("a stream ends before the port is anybody's", begun.startswith(b"HTTP/1.1 200") and rest == b"" and daemon.poll() is None, rest, daemon.poll())
half.close()
daemon.wait()
daemon = start()
again.hello()

# Another program takes the port while the daemon is away.
token = json.loads(ava("mcp", "token", "--json").stdout)["token"]
stop(daemon)
other = squat(again.port)
daemon = start()
status = ava("status").stdout
check("a port that cannot be had again is told", f"port {again.port} could not be had again" in status and "`ava dashboard`" in status, status)
with open(os.path.join(ROOT, "web.json")) as f:
    kept = json.load(f)
check("and all sessions end", kept["sessions"] == [] and not kept["mcp"], kept)
url = dashboard()
new = page_key.tab(url)
check("a sign-in is at another one", new.port != again.port and new.status("GET", "/api/v1/health") == 200)
again.port = new.port
check("whoever was signed in is not any more", again.hello() == 403 and again.status("GET", "/api/v1/health") == 401)
check("nor is the token of MCP good", page_key.ask(new.port, "POST", "/mcp", "{}", Authorization=f"Bearer {token}")[0] == 401
      and json.loads(ava("mcp", "token", "--json").stdout)["token"] != token)
check("status says nothing of it any more", "could not be had" not in ava("status").stdout)
other.close()

# A port that systemd holds is ours all the while.
stop(daemon)
held = squat(0)
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
os.dup2(held.fileno(), 3)
with open(os.path.join(os.environ["T"], "held.sh"), "w") as f:
    f.write('LISTEN_PID=$$ LISTEN_FDS=1 exec "$AVA" serve\n')


def start_held():
    return start("sh", f.name, pass_fds=[3])


daemon = start_held()
tab = page_key.tab(dashboard())
with open(f"/proc/{daemon.pid}/fdinfo/3", encoding="ascii") as info:
    flags = int(re.search(r"flags:\s*(\d+)", info.read())[1], 8)
check("and no program that the daemon starts has it", flags & os.O_CLOEXEC)
check("a socket that is handed over is the page's", tab.port == held.getsockname()[1] and tab.status("GET", "/api/v1/health") == 200)
stop(daemon)
daemon = start_held()
check("and stays so", isinstance(tab.hello(), Key) and page_key.tab(dashboard()).port == tab.port)
token = json.loads(ava("mcp", "token", "--json").stdout)["token"]
stop(daemon)
other = squat(tab.port, "::1")
daemon = start_held()
new = page_key.tab(dashboard())
check("but not while another one has it at the other address", new.port != tab.port and tab.hello(port=new.port) == 403)
stop(daemon)
other.close()
daemon = start_held()
check("one that is handed over anew ends what the one before was told", new.hello(port=tab.port) == 403)
stop(daemon)
