"""Requests to the daemon of $AVA_DATA_ROOT, for the tests in Python."""

import http.client
import json
import os
import socket

ROOT = os.environ["AVA_DATA_ROOT"]
PATIENCE = 120  # seconds for anything


class Socket(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(os.path.join(ROOT, "ava.sock"))


def ask(method, path, body=None):
    c = Socket("x")
    c.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None,
              {"Content-Type": "application/json"})
    answer = c.getresponse()
    data = json.loads(answer.read())
    c.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {data}")
    return data
