#!/usr/bin/python3
"""mock-models on the wire: that a quirk is really played (who plays one and does not see it
would pass), that requests are read however they are cut, that what was refused is counted.
The faults: test/cli/faults.py, which looks at each; TLS and HTTP/2: test_http_client_tls.c.

    test_mock_wire.py MOCK-MODELS"""

import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time

MOCK = None  # set by main
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
TOOLS = [{"name": "read_file", "input_schema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
    {"name": "submit_result", "input_schema": {"type": "object"}}]


class Mock:
    def __init__(self):
        self.log = tempfile.NamedTemporaryFile(prefix="ava-mock-")
        self.process = subprocess.Popen([MOCK_PATH, "--quiet", "--log", self.log.name], stdout=subprocess.PIPE, text=True)
        self.port = {}
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                break
            self.port[word] = int(rest.rsplit(":", 1)[1]) if ":" in rest else rest

    def stop(self):
        self.process.terminate()
        code = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        return code

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port["plain"])
        connection.request("GET", path)
        body = json.load(connection.getresponse())
        connection.close()
        return body

    def post(self, path, body, headers=None):
        """(status, body bytes)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port["plain"], timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, HEADERS if headers is None else headers)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        finally:
            connection.close()


def ask(text, model="claude-sonnet-4-5", **more):
    return {"model": model, "max_tokens": 1000, "stream": True, "tools": TOOLS,
            "messages": [{"role": "user", "content": text}], **more}


def events(data):
    out = []
    for frame in data.decode("utf-8", "replace").split("\n\n"):
        for line in frame.split("\n"):
            if line.startswith("data: "):
                out.append(line[6:])
    return out


def test_quirks():
    for quirk, found in (("sealed", b'"seal":"'), ("redacted", b"redacted_thinking")):
        _, body = MOCK.post("/v1/messages", ask(f"quirk [[mock quirk={quirk}]]"))
        assert found in body, (quirk, body)


def chat(text, path="/v1/chat/completions"):
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}]
    return MOCK.post(path, {"model": "gpt-4o", "stream": True, "tools": tools, "messages": [
        {"role": "user", "content": text}]}, {"authorization": "Bearer k", "content-type": "application/json"})


def deltas(data):
    return [c["choices"][0]["delta"] for c in map(json.loads, events(data)[:-1])
            if c.get("choices")]


def test_chat_quirks():
    for quirk, check in (
            ("index0", lambda calls: {c["index"] for c in calls} == {0}),
            ("no-index", lambda calls: all("index" not in c for c in calls)),
            ("no-ids", lambda calls: all("id" not in c for c in calls)),
            ("args-object", lambda calls: isinstance(calls[0]["function"]["arguments"], dict))):
        _, data = chat(f"[[mock calls=2 quirk={quirk}]]")
        calls = [d["tool_calls"][0] for d in deltas(data) if "tool_calls" in d]
        assert calls and check(calls), (quirk, calls)
    assert b"reasoning_details" in chat("[[mock thinking=1]]", "/api/v1/chat/completions")[1]
    assert b"reasoning_content" in chat("[[mock thinking=1 quirk=reasoning-content]]")[1]


def test_pieces_of_a_request():
    body = json.dumps(ask("in pieces")).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in HEADERS.items())
    raw = (f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(body)}\r\n\r\n"
           .encode() + body)
    with socket.create_connection(("127.0.0.1", MOCK.port["plain"])) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(raw), 37):
            s.sendall(raw[i:i + 37])
        assert s.recv(15) == b"HTTP/1.1 200 OK"


def test_chunked_request_and_reuse():
    connection = http.client.HTTPConnection("127.0.0.1", MOCK.port["plain"])
    body = json.dumps(ask("chunked")).encode()
    for _ in range(3):
        connection.request("POST", "/v1/messages", iter([body[:100], body[100:]]), HEADERS,
                           encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read().endswith(b"\n\n")
    connection.close()


def test_account():
    MOCK.get("/stats?clear")
    MOCK.post("/v1/messages", ask("counted"))
    MOCK.post("/v1/messages", ask("refused", max_tokens=0))
    MOCK.post("/v1/messages", b"{")
    stats = MOCK.get("/stats")
    assert (stats["requests"], stats["done"], stats["refused"]) == (3, 1, 2), stats
    rows = MOCK.get("/requests?limit=2")
    assert [r["number"] for r in rows] == [2, 3] and "greater than" in rows[0]["error"], rows
    status, _ = MOCK.post("/plan", {"rules": [{"model": "claude-haiku*", "play": "fault=503"}]})
    assert status == 200
    assert MOCK.post("/v1/messages", ask("ruled", "claude-haiku-4-5"))[0] == 503
    assert MOCK.post("/v1/messages", ask("ruled", "claude-sonnet-4-5"))[0] == 200
    assert MOCK.post("/plan", {"rules": [{"play": "fault=nonsense"}]})[0] == 400
    assert MOCK.post("/plan", {"rules": []})[0] == 200


def test_log():
    before = time.monotonic() * 1000
    body = ask("who asks, and when?")
    connection = http.client.HTTPConnection("127.0.0.1", MOCK.port["plain"], source_address=("127.0.0.7", 0))
    connection.request("POST", "/v1/messages", json.dumps(body), HEADERS)
    connection.getresponse().read()
    connection.close()
    line = json.loads(MOCK.log.read().splitlines()[-1])
    assert line["from"] == "127.0.0.7" and line["body"] == body, line
    assert before - 10 <= line["atMs"] <= time.monotonic() * 1000, (before, line)


def test_not_http():
    with socket.create_connection(("127.0.0.1", MOCK.port["plain"])) as s:
        s.sendall(b"\x16\x03\x01 what is this?\r\n\r\n")
        assert s.recv(10) == b""
    with socket.create_connection(("127.0.0.1", MOCK.port["plain"])) as s:
        s.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n")
        assert s.recv(12) == b"HTTP/1.1 413"
    assert MOCK.post("/nowhere", b"{}")[0] == 404
    assert MOCK.get("/v1/models")["data"]


def main():
    global MOCK
    MOCK = Mock()
    failed = 0
    tests = [(n, f) for n, f in sorted(globals().items()) if n.startswith("test_")]
    for number, (name, function) in enumerate(tests, 1):
        try:
            function()
            print(f"ok {number} - {name}")
        except AssertionError as why:
            failed += 1
            print(f"not ok {number} - {name}: {str(why)[:2000]}")
    code = MOCK.stop()
    if code != 0:
        print(f"not ok {len(tests) + 1} - mock-models ended with code {code}")
    return 1 if failed or code != 0 else 0


if __name__ == "__main__":
    MOCK_PATH = sys.argv[1]
    sys.exit(main())
