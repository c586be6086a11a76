"""The door for browsers, knocked on by others than browsers; played by test_door.sh. The numbers are those of doc/SECURITY.md."""

import json
import os
import re
import select
import socket
import time

from api import ava, check

URL = re.match(r"http://127\.0\.0\.1:(\d+)/#code=([0-9a-f]{32})\n$", ava("dashboard", "--no-open").stdout)
PORT, CODE = int(URL[1]), URL[2]
HOST = f"127.0.0.1:{PORT}"


def raw(data, patience=60):
    s = socket.create_connection(("127.0.0.1", PORT), patience)
    s.sendall(data)
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except (TimeoutError, ConnectionResetError):
        pass
    s.close()
    return got


def ask(method, path, body=None, host=HOST, **fields):
    """Status, head and body; a field of None is left out."""
    head = {"Host": host, "Connection": "close"}
    if body is not None:
        head |= {"Content-Type": "application/json", "Origin": f"http://{HOST}", "Content-Length": len(body)}
    head |= {k.replace("_", "-"): v for k, v in fields.items()}
    lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in head.items() if v is not None]
    got = raw(("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode())
    head, _, rest = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, head.decode(), rest


def status(*args, **fields):
    return ask(*args, **fields)[0]


def sign_in(code):
    s, _, body = ask("POST", "/api/v1/login", json.dumps({"code": code}))
    return json.loads(body)["token"] if s == 200 else s


def fresh():
    return sign_in(ava("dashboard", "--no-open").stdout.strip().split("code=")[1])


def hosts():
    for host in ("evil.com", f"evil.com:{PORT}", f"127.0.0.1.evil.com:{PORT}", f"localhost.:{PORT}", "127.0.0.1", "localhost",
                 f"127.0.0.1:{PORT + 1}", f"127.0.0.1:{PORT}.evil.com", f"0.0.0.0:{PORT}", f"2130706433:{PORT}", f"127.1:{PORT}", ""):
        for path in ("/", "/api/v1/health", "/api/v1/events", "/api/v1/login"):
            s = status("GET", path, host=host)
            if s not in (400, 421):
                check(f"19 Host {host!r} of {path}", False, s)
    check("19 another Host is refused, whatever is asked", True)
    check("19 two of them as well", raw(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
          .startswith(b"HTTP/1.1 400"))
    check("19 and none", raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400"))
    check("each name of this machine is ours", [status("GET", "/", host=f"{h}:{PORT}") for h in
                                                ("127.0.0.1", "localhost", "LOCALHOST", "[::1]")] == [200] * 4)


def origins(token):
    auth = f"Bearer {token}"
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
            s = status("POST", path, body, **{"Authorization": auth, **fields})
            if s != 403:
                check(f"20 {name}, {path}", False, s)
    check("20 what changes something comes from the page, as JSON", ava("ps", "-a", "--json").stdout.strip() == "[]")
    check("20 reading from another origin is refused", status("GET", "/api/v1/health", Authorization=auth, Origin="http://evil.com") == 403)
    check("20 no method but GET and POST", [status(m, "/api/v1/health", Authorization=auth) for m in
                                             ("OPTIONS", "PUT", "DELETE", "PATCH")] == [403] * 4)
    head = ask("GET", "/api/v1/health", Authorization=auth)[1]
    check("20 nothing is said of CORS", "access-control" not in head.lower(), head)


def tokens(token):
    paths = ["/api/v1/health", "/api/v1/runs", "/api/v1/events", "/api/v1/logs", "/api/v1/sessions", "/api/v1/proposals",
             "/api/v1/nonsense", "/api/", "/metrics"]
    wrong = [None, "", "Bearer ", "Bearer x", f"Basic {token}", f"bearer {token}", f"Bearer {token}x", f"Bearer {token[:-1]}",
             f"Bearer {token.upper()}", f"Bearer  {token}", f"Token {token}"]
    got = {(p, w): status("GET", p, Authorization=w) for p in paths for w in wrong}
    check("21 nothing is read without a token", set(got.values()) == {401}, {k: v for k, v in got.items() if v != 401})
    check("21 nor with one in the address", status("GET", f"/api/v1/health?token={token}") == 401)
    check("with one it is", status("GET", "/api/v1/health", Authorization=f"Bearer {token}") == 200)
    check("and who did it is the owner", json.loads(ask("GET", "/api/v1/runs", Authorization=f"Bearer {token}")[2]) == {"runs": []})


def streams(token):
    s = socket.create_connection(("127.0.0.1", PORT), 60)
    s.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    begun = s.recv(65536)
    ava("dashboard", "--sign-out")
    while s.recv(65536):
        pass
    check("21 whoever is signed out has no stream any more", begun.startswith(b"HTTP/1.1 200"), begun)
    check("21 and no token", status("GET", "/api/v1/health", Authorization=f"Bearer {token}") == 401)


def codes():
    check("22 a code is good once", sign_in(CODE) == 403)
    old = ava("dashboard", "--no-open").stdout.strip().split("code=")[1]
    new = ava("dashboard", "--no-open").stdout.strip().split("code=")[1]
    check("22 and not when a newer one was asked for", sign_in(old) == 403 and len(sign_in(new)) == 64)
    check("22 wrong ones are none", [sign_in(c) for c in ("", "x", new, new.upper(), "0" * 32, "é" * 60)] == [403] * 6)


def heads(token):
    s, head, body = ask("GET", "/")
    for field in ("Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                  "frame-ancestors 'none'", "Cache-Control: no-store", "Cross-Origin-Opener-Policy: same-origin"):
        if field not in head:
            check(field, False, head)
    check("the page says what it may do, and holds no token", s == 200 and token.encode() not in body)
    check("what is no file is none", status("GET", "/assets/../../etc/passwd") == 404 and status("GET", "/assets/x.js") == 404 and status("GET", "/health") == 404 and status("GET", "/") == 200)
    check("the page takes no POST", status("POST", "/", "{}") == 405)


def ended(s):
    """The daemon does not wait for this one any more."""
    return bool(select.select([s], [], [], 0)[0])


def floods(token):
    """24: two lengths and chunked at once, heads without end, bodies too large; meanwhile others are served."""
    smuggled = raw(f"POST /api/v1/login HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                   f"GET /api/v1/health HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
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
        if held > 100 or not answers:
            break
    check("24 slow heads keep the command line out of nothing", answers and held > 100, (answers, held, len(slow)))
    began, s = time.monotonic(), 0
    while s != 200 and time.monotonic() < began + 60:
        try:
            s = status("GET", "/api/v1/health", Authorization=f"Bearer {token}")
        except OSError:
            pass
    check("24 and a browser out for seconds", s == 200)
    for s in slow:
        s.close()


codes_token = sign_in(CODE)
check("22 a code gives a token", len(codes_token) == 64, codes_token)
hosts()
origins(codes_token)
tokens(codes_token)
heads(codes_token)
codes()
floods(codes_token)
streams(codes_token)
with open(os.path.join(os.environ["AVA_DATA_ROOT"], "web.json")) as f:
    check("nothing that signs in stands on the disk", json.load(f)["sessions"] == [])
print(fresh(), PORT, file=open(os.path.join(os.environ["T"], "session"), "w"))
