"""What stands between ava and a model server and keeps what they say: each request as it was sent, each reply as it
came, when, and the figures of llama.cpp (`timings`). Nothing is changed but that each connection has one request.

`Proxy(port).calls` are the model calls in the order of their beginning; `Call.prefix` is what the next request of
the same run has to begin with."""

import json
import os
import re
import select
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models"))
from service import read_request  # noqa: E402


class Call:
    def __init__(self, request):
        self.request, self.body, self.raw = request, request.body, request.raw
        self.began, self.first, self.ended = time.monotonic(), None, None
        self.reply, self.left = b"", False  # left: ava hung up before the end

    def prefix(self):
        """The bytes to the end of the last message."""
        return self.raw[:end_of_list(self.raw, b'"messages":')]

    def status(self):
        found = re.match(rb"HTTP/1.1 (\d+)", self.reply)
        return int(found.group(1)) if found else 0

    def events(self):
        """The JSON of the stream's events, or the one of a reply in one piece."""
        body = dechunked(self.reply)
        lines = re.findall(rb"^data: (\{.*\})", body, re.M) or [body]
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return found

    def timings(self):
        """Of llama.cpp: prompt_n tokens were evaluated, cache_n were there already, predicted_n written."""
        return next((e["timings"] for e in reversed(self.events()) if e.get("timings")), {})

    def said(self):
        """The reply's text, and its calls as [name, arguments]."""
        text, calls = "", {}
        for choice in (c for e in self.events() for c in e.get("choices") or []):
            delta = choice.get("delta") or choice.get("message") or {}
            text += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                call = calls.setdefault(part.get("index", 0), ["", ""])
                for at, key in enumerate(("name", "arguments")):
                    call[at] += (part.get("function") or {}).get(key) or ""
        return text, list(calls.values())

    def task(self):
        """The first words of the person: what tells the runs apart."""
        first = next((m for m in self.body.get("messages", []) if m.get("role") == "user"), {})
        return str(first.get("content"))


def end_of_list(raw, name):
    """Where the list behind `name` ends, its bracket not included."""
    at = raw.index(name) + len(name)
    depth, text, escaped = 0, False, False
    for at in range(at, len(raw)):
        c = raw[at]
        if text:
            text, escaped = not (c == 0x22 and not escaped), c == 0x5c and not escaped
        elif c == 0x22:
            text = True
        elif c in b"[{":
            depth += 1
        elif c in b"]}":
            depth -= 1
            if depth == 0:
                return at
    raise ValueError("the list has no end")


def dechunked(reply):
    head, _, body = reply.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    out = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        try:
            size = int(size, 16)
        except ValueError:
            return out
        if not size:
            return out
        out, body = out + body[:size], body[size + 2:]


class Proxy:
    def __init__(self, port):
        self.port, self.calls, self.others, self.lock = port, [], [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        call = None
        try:
            request = read_request(conn.makefile("rb"), conn)
            if request is None:
                return
            call = Call(request)
            with self.lock:
                (self.calls if request.method == "POST" and "messages" in request.body else self.others).append(call)
            with socket.create_connection(("127.0.0.1", self.port)) as server:
                head = {**request.headers, "connection": "close", "host": f"127.0.0.1:{self.port}"}
                server.sendall(f"{request.method} {request.path} HTTP/1.1\r\n".encode()
                               + "".join(f"{k}: {v}\r\n" for k, v in head.items()).encode() + b"\r\n" + request.raw)
                self.pass_on(call, server, conn)
        except OSError:
            pass
        finally:
            if call:
                call.ended = time.monotonic()
            conn.close()

    @staticmethod
    def pass_on(call, server, conn):
        while True:
            ready = select.select([server, conn], [], [])[0]
            if conn in ready and not conn.recv(65536):
                call.left = True  # the server's connection is closed, too: it stops
                return
            if server in ready:
                piece = server.recv(65536)
                if not piece:
                    return
                call.reply += piece
                if call.first is None and (b'"content":"' in piece or b"tool_calls" in piece):
                    call.first = time.monotonic()
                conn.sendall(piece)

    def of(self, words):
        """The calls of the run whose task has these words."""
        return [c for c in self.calls if words in c.task()]
