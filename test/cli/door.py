"""The door for browsers, knocked on by others than browsers; played by test_door.sh. The numbers are those of doc/SECURITY.md."""

import json
import os
import re
import select
import signal
import socket
import time

import page_key
from api import ava, check, daemon_pid
from page_key import Key

URL = re.match(r"http://127\.0\.0\.1:(\d+)/#code=([0-9a-f]{32})\n$", ava("dashboard", "--no-open").stdout)
PORT, CODE = int(URL[1]), URL[2]
HOST = f"127.0.0.1:{PORT}"


def raw(data):
    return page_key.raw(PORT, data)


def ask(*args, **fields):
    return page_key.ask(PORT, *args, **fields)


def status(*args, **fields):
    return ask(*args, **fields)[0]


def dashboard():
    return ava("dashboard", "--no-open").stdout


def hosts():
    for host in ("evil.com", f"evil.com:{PORT}", f"127.0.0.1.evil.com:{PORT}", f"localhost.:{PORT}", "127.0.0.1", "localhost",
                 f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.evil.com", f"0.0.0.0:{PORT}", f"2130706433:{PORT}", f"127.1:{PORT}", ""):
        for path in ("/", "/api/v1/health", "/api/v1/events", "/api/v1/login"):
            s = status("GET", path, Host=host)
            if s not in (400, 421):
                check(f"19 Host {host!r} of {path}", False, s)
    check("19 another Host is refused, whatever is asked", True)
    check("19 two of them as well", raw(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
          .startswith(b"HTTP/1.1 400"))
    check("19 and none", raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400"))
    check("each name of this machine is ours", [status("GET", "/", Host=f"{h}:{PORT}") for h in
                                                ("127.0.0.1", "localhost", "LOCALHOST", "[::1]")] == [200] * 4)


def origins(tab):
    body = json.dumps({"task": "x", "role": "researcher"})
    bad = {
        "a form": dict(Content_Type="application/x-www-form-urlencoded"), "plain text": dict(Content_Type="text/plain"),
        "no type": dict(Content_Type=None), "another origin": dict(Origin="http://evil.com"), "a null origin": dict(Origin="null"),
        "https": dict(Origin=f"https://{HOST}"), "another port": dict(Origin=f"http://127.0.0.1:{PORT + 1}"),
        "another name of ours": dict(Origin=f"http://localhost:{PORT}"), "no origin": dict(Origin=None),
        "another site": dict(Sec_Fetch_Site="cross-site"), "the same site": dict(Sec_Fetch_Site="same-site"),
        "an address typed in": dict(Sec_Fetch_Site="none"),
    }
    for name, fields in bad.items():
        for path in ("/api/v1/runs", "/api/v1/shutdown", "/api/v1/login"):
            s = tab.status("POST", path, body, **fields)
            if s != 403:
                check(f"20 {name}, {path}", False, s)
    check("20 what changes something comes from the page, as JSON", ava("ps", "-a", "--json").stdout.strip() == "[]")
    check("20 reading from another origin is refused", tab.status("GET", "/api/v1/health", Origin="http://evil.com") == 403)
    check("20 no method but GET and POST", [tab.status(m, "/api/v1/health") for m in
                                             ("OPTIONS", "PUT", "DELETE", "PATCH")] == [403] * 4)
    head = tab.ask("GET", "/api/v1/health")[1]
    check("20 nothing is said of CORS", "access-control" not in head.lower(), head)


def signatures(tab):
    paths = ["/api/v1/health", "/api/v1/runs", "/api/v1/events", "/api/v1/logs", "/api/v1/sessions", "/api/v1/proposals",
             "/api/v1/nonsense", "/api/", "/metrics"]
    stranger = Key(PORT, os.urandom(32))
    stranger.challenge = tab.challenge

    def wrong(path):
        n = tab.number + 1
        good, code = tab.sign("GET", path, number=n), f"Bearer {CODE}"
        bad = [None, "", "Ava ", "Bearer x", code, f"Bearer {tab.id}", f"Basic {good[-64:]}", good.lower(), good + "0", good[:-1],
               good[:-64] + good[-64:].upper(), good.replace("n=", "n=0"), good.replace("n=", "n=+"), good.replace(f"n={n}", f"n={n + 1}"),
               good.replace(tab.id, stranger.id), stranger.sign("GET", path, number=n), tab.sign("HEAD", path, number=n),
               tab.sign("GET", path + "?", number=n), tab.sign("GET", path, number=n, host=f"localhost:{PORT}"),
               tab.sign("GET", path, number=n, body="{}"), tab.sign("GET", path, number=2**53)]
        tab.number = n - 1  # a number is not spent by what is refused
        return bad

    got = {(p, w): status("GET", p, Authorization=w) for p in paths for w in wrong(p)}
    check("21 nothing is read without a signature of it", set(got.values()) == {401}, {k: v for k, v in got.items() if v != 401})
    check("with one it is", tab.status("GET", "/api/v1/health") == 200)
    check("and who did it is the owner", json.loads(tab.ask("GET", "/api/v1/runs")[2]) == {"runs": [], "next": ""})
    check("21 nor with the code's key or the browser's", [k.status("GET", "/api/v1/health") for k in (Key(PORT, bytes.fromhex(CODE)), BROWSER)] == [401] * 2)
    # What is signed is what was sent, byte for byte, and not what it means.
    sent = {"/api/v1/runs?limit=1&all=true": "/api/v1/runs?all=true&limit=1", "/api/v1/runs": "/api/v1/%72uns",
            "/api/v1/runs/": "/api/v1/runs", "/api/v1/sessions": "/api/v1/./sessions"}
    check("21 an address that is written otherwise is another one", [status("GET", b, Authorization=tab.sign("GET", a)) for a, b in sent.items()] == [401] * 4)
    body = '{"sign_out":false}'
    check("21 and so is a body", status("POST", "/api/v1/dashboard", body.replace("false", "true "),
                                        Authorization=tab.sign("POST", "/api/v1/dashboard", body)) == 401)


def replays(tab):
    path = "/api/v1/health"
    first, second, third = (tab.sign("GET", path) for _ in range(3))
    check("21 requests may overtake each other", [status("GET", path, Authorization=a) for a in (third, first, second)] == [200] * 3)
    check("21 and none is good twice", [status("GET", path, Authorization=a) for a in (third, first, second)] == [401] * 3)
    late = tab.sign("GET", path)
    far = tab.sign("GET", path, number=tab.number + 5000)
    check("21 nor one that is far behind", [status("GET", path, Authorization=a) for a in (far, late, far)] == [200, 401, 401])
    check("21 the next is", tab.status("GET", path) == 200)
    _, said = tab.greeting()
    wrong = {"mac": "0" * 64, "id": "0" * 32, "nonce": "x" * 32, "host": f"127.0.0.1:{PORT + 1}"}
    check("21 a greeting says who, to whom and when", [status("POST", "/api/v1/login", json.dumps(said | {k: v})) for k, v in wrong.items()] == [403] * 4)
    answer = json.loads(ask("POST", "/api/v1/login", json.dumps(said))[2])
    check("21 a proof of the daemon's is none of a page's", status("POST", "/api/v1/login", json.dumps(said | {"mac": answer["proof"]})) == 403)


def streams(tab):
    s = socket.create_connection(("127.0.0.1", PORT), 60)
    s.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: {tab.sign('GET', '/api/v1/events')}\r\n\r\n".encode())
    begun = s.recv(65536)
    ava("dashboard", "--sign-out")
    while s.recv(65536):
        pass
    check("21 whoever is signed out has no stream any more", begun.startswith(b"HTTP/1.1 200"), begun)
    check("21 and signs nothing", tab.status("GET", "/api/v1/health") == 401 and BROWSER.hello() == 403)


def codes():
    check("22 a code is good once", Key(PORT, bytes.fromhex(CODE)).hello() == 403)
    old, new = dashboard(), dashboard()
    check("22 and not when a newer one was asked for", page_key.browser(old) == 403 and isinstance(page_key.tab(new), Key))
    said, late = {"host": HOST, "nonce": "0" * 32, "mac": "0" * 64}, dashboard()
    check("22 wrong ones are none, however many", {status("POST", "/api/v1/login", json.dumps(said | {"id": f"{i:032x}"})) for i in range(200)} == {403})
    check("22 and keep nobody out", isinstance(page_key.tab(late), Key))


def heads(tab):
    s, head, body = ask("GET", "/")
    for field in ("Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                  "frame-ancestors 'none'", "Cache-Control: no-store", "Cross-Origin-Opener-Policy: same-origin"):
        if field not in head:
            check(field, False, head)
    check("the page says what it may do, and holds no token", s == 200 and tab.id.encode() not in body)
    check("what is no file is none", status("GET", "/assets/../../etc/passwd") == 404 and status("GET", "/assets/x.js") == 404 and status("GET", "/health") == 404 and status("GET", "/") == 200)
    check("the page takes no POST", status("POST", "/", "{}") == 405)


def ended(s):
    """The daemon does not wait for this one any more."""
    return bool(select.select([s], [], [], 0)[0])


def floods(tab):
    """24: two lengths and chunked at once, heads without end, bodies too large; meanwhile others are served."""
    smuggled = raw(f"POST /api/v1/login HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                   f"GET /api/v1/health HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: {tab.sign('GET', '/api/v1/health')}\r\n\r\n".encode())
    check("24 two ways to end a body are none", smuggled.startswith(b"HTTP/1.1 400") and smuggled.count(b"HTTP/1.1") == 1, smuggled)
    big = raw(f"POST /api/v1/login HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 2147483648\r\n\r\n".encode())
    check("24 two gigabytes are not waited for", big.startswith(b"HTTP/1.1 413"), big)
    for _ in range(5):  # a slow machine may ask when they are not waited for any more: then that says nothing
        slow = []
        for _ in range(300):
            try:
                s = socket.create_connection(("127.0.0.1", PORT), 5)
                s.sendall(b"GET / HTTP/1.1\r\nHost: ")
                slow.append(s)
            except OSError:
                break
        answers = ava("ps").returncode == 0
        held = sum(not gone for gone in map(ended, slow))
        if held > 90 or not answers:
            break
    check("24 slow heads keep the command line out of nothing", answers and held > 90, (answers, held, len(slow)))
    began, s = time.monotonic(), 0
    while s != 200 and time.monotonic() < began + 60:
        try:
            s = tab.status("GET", "/api/v1/health")
        except OSError:
            pass
    check("24 and a browser out for seconds", s == 200)
    for s in slow:
        s.close()


def strangers():
    """Another user of the machine, who has all that there is to have."""
    if os.geteuid() != 0:
        return
    tab, said = page_key.tab(dashboard()), []
    token = json.loads(ava("mcp", "token", "--json").stdout)["token"]
    for uid in (4401, 0):
        r, w = os.pipe()
        if os.fork() == 0:
            os.setresuid(uid, uid, uid)
            got = [tab.ask("GET", "/api/v1/health"), ask("GET", "/"), ask("POST", "/mcp", "{}", Authorization=f"Bearer {token}")]
            os.write(w, json.dumps([(s, b.decode(errors="replace")[:200]) for s, _, b in got]).encode())
            os._exit(0)
        os.close(w)
        with open(r, "rb") as f:
            said.append(json.load(f))
        os.wait()
    check("23 a process of another user's is refused before anything", [s for s, _ in said[0]] == [403] * 3 and "another user" in said[0][1][1], said[0])
    check("23 one of its own is not", [s for s, _ in said[1]][:2] == [200] * 2 and said[1][2][0] != 403, said[1])
    # Who has gone when it is looked for is nobody: nothing is done for it.
    s, body = socket.create_connection(("127.0.0.1", PORT), 60), '{"sign_out":true}'
    os.kill(daemon_pid(), signal.SIGSTOP)
    s.sendall(f"POST /api/v1/dashboard HTTP/1.1\r\nHost: {HOST}\r\nOrigin: http://{HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
              f"Authorization: {tab.sign('POST', '/api/v1/dashboard', body)}\r\n\r\n{body}".encode())
    s.close()
    os.kill(daemon_pid(), signal.SIGCONT)
    check("23 whoever hung up is nobody", tab.status("GET", "/api/v1/health") == 200)


def other_address():
    """Who says localhost may be sent to ::1, where nobody else may stand."""
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("::1", PORT))
        taken = True
    except OSError:
        taken = False
    check("19 the other loopback address is held, too", not taken)


BROWSER = Key(PORT, bytes.fromhex(CODE)).hello()
check("22 a code gives a browser its key", isinstance(BROWSER, Key), BROWSER)
TAB = BROWSER.hello()
check("22 and that each tab its own", isinstance(TAB, Key) and TAB.id != BROWSER.hello().id)
hosts()
other_address()
origins(TAB)
signatures(TAB)
replays(TAB)
heads(TAB)
codes()
floods(TAB)
strangers()
streams(TAB)
with open(os.path.join(os.environ["AVA_DATA_ROOT"], "web.json")) as f:
    check("nothing that signs in stands on the disk", json.load(f)["sessions"] == [])
