#!/usr/bin/env python3
"""A receiver of notices (notify.url) that behaves as told.

    notify_stand.py FOLDER

Listens on 127.0.0.1; "port N" is its first line. FOLDER/plan says how it answers, a line a request,
the last one for ever: a status, with a Retry-After or Location behind it (`429 30`), `drop` (the connection
is closed without an answer), `silent` (nothing until the client leaves). Each request is a line
of JSON in FOLDER/seen: path, headers in small letters, the body as text."""

import http.server
import json
import os
import sys
import threading

FOLDER = sys.argv[1]
LOCK = threading.Lock()
COUNT = [0]


def answer():
    with open(os.path.join(FOLDER, "plan"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    lines = [line for line in lines if line]
    with LOCK:
        COUNT[0] += 1
        return lines[min(COUNT[0], len(lines)) - 1].split()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = {"path": self.path, "body": body.decode(),
                "headers": {k.lower(): v.encode("latin-1").decode() for k, v in self.headers.items()}}
        how = answer()
        with LOCK, open(os.path.join(FOLDER, "seen"), "a", encoding="utf-8") as f:
            f.write(json.dumps(said) + "\n")
        if how[0] == "silent":
            self.rfile.read(1)
        if how[0] in ("drop", "silent"):
            self.close_connection = True
            return
        self.send_response(int(how[0]))
        if len(how) > 1:
            self.send_header("Location" if how[0][0] == "3" else "Retry-After", how[1])
        self.send_header("Content-Length", "0")
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
print("port", server.server_address[1], flush=True)
server.serve_forever()
