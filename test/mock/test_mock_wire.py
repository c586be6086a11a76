#!/usr/bin/python3
"""mock-models on the wire: what each fault looks like to a client over HTTP/1.1, TLS and
HTTP/2, that requests are read however they are cut, and that the account is right.

    test_mock_wire.py MOCK-MODELS"""

import http.client
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile

MOCK = None  # set by main
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
TOOLS = [{"name": "read_file", "input_schema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
    {"name": "submit_result", "input_schema": {"type": "object"}}]


class Mock:
    def __init__(self, folder):
        self.ca = os.path.join(folder, "ca.pem")
        self.process = subprocess.Popen(
            [MOCK_PATH, "--quiet", "--tls", "--tls-bad", "expired", "--tls-bad", "garbage",
             "--tls-bad", "name", "--tls-bad", "self", "--ca", self.ca],
            stdout=subprocess.PIPE, text=True)
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
        return code

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port["plain"])
        connection.request("GET", path)
        body = json.load(connection.getresponse())
        connection.close()
        return body

    def post(self, path, body, headers=None, connection=None):
        """(status, headers, body bytes or what the client saw instead)."""
        own = connection is None
        connection = connection or http.client.HTTPConnection(
            "127.0.0.1", self.port["plain"], timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request("POST", path, data, HEADERS if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except http.client.IncompleteRead as error:
            return answer.status, answer.headers, ("cut", len(error.partial))
        except (ConnectionError, http.client.HTTPException) as error:
            return 0, {}, (type(error).__name__, 0)
        finally:
            if own:
                connection.close()


def ask(text, model="claude-sonnet-4-5", messages=None, **more):
    body = {"model": model, "max_tokens": 1000, "stream": True, "tools": TOOLS,
            "messages": messages or [{"role": "user", "content": text}]}
    body.update(more)
    return body


def events(data):
    out = []
    for frame in data.decode("utf-8", "replace").split("\n\n"):
        for line in frame.split("\n"):
            if line.startswith("data: "):
                out.append(line[6:])
    return out


def message(data):
    """The message of a stream of the Messages API, put together as a client does."""
    blocks, stop = [], None
    for event in map(json.loads, events(data)):
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
            if blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = ""
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            for kind, member in (("text", "text"), ("partial_json", "input"),
                                 ("thinking", "thinking"), ("signature", "signature")):
                if kind in delta:
                    block[member] += delta[kind]
        elif event["type"] == "message_delta":
            stop = event["delta"]["stop_reason"]
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["input"] or "{}")
    return blocks, stop


def results(blocks):
    return [{"type": "tool_result", "tool_use_id": b["id"], "content": "r"}
            for b in blocks if b["type"] == "tool_use"]


def talk(name, turns, **more):
    """A whole conversation; the names of the tools that were called."""
    messages, called = [{"role": "user", "content": f"{name} [[mock turns={turns}]]"}], []
    while True:
        status, _, data = MOCK.post("/v1/messages", ask("", messages=messages, **more))
        assert status == 200, data
        blocks, stop = message(data)
        called += [b["name"] for b in blocks if b["type"] == "tool_use"]
        if stop != "tool_use" or called[-1] == "submit_result":
            return called
        messages = messages + [{"role": "assistant", "content": blocks},
                               {"role": "user", "content": results(blocks)}]


def test_conversation():
    assert talk("plain", 2) == ["read_file"] * 2 + ["submit_result"]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert talk("thinks", 2, thinking=thinking, max_tokens=4000)[-1] == "submit_result"


def test_thinking_must_come_back_whole():
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
    first = [{"role": "user", "content": "think first"}]
    _, _, data = MOCK.post("/v1/messages", ask("", messages=first, **thinking))
    blocks, _ = message(data)
    assert blocks[0]["type"] == "thinking" and blocks[0]["signature"]
    answer = {"role": "user", "content": results(blocks)}
    for change in ("text", "signature", "gone"):
        other = [dict(b) for b in blocks]
        if change == "text":
            other[0]["thinking"] += " "
        elif change == "signature":
            other[0]["signature"] = other[0]["signature"][:-1] + "!"
        else:
            del other[0]
        status, _, body = MOCK.post("/v1/messages", ask(
            "", messages=first + [{"role": "assistant", "content": other}, answer], **thinking))
        assert status == 400, (change, body)
    status, _, body = MOCK.post("/v1/messages", ask(
        "", messages=first + [{"role": "assistant", "content": blocks}, answer], **thinking))
    assert status == 200, body


def test_every_byte_can_be_cut():
    _, _, whole = MOCK.post("/v1/messages", ask("cut me 9999 [[mock chunks=3]]"))
    for k in (0, 1, 57, len(whole) // 2, len(whole) - 1):
        task = f"cut me {k:4} [[mock chunks=3 fault=cut:{k}]]"
        status, _, body = MOCK.post("/v1/messages", ask(task))
        assert (status, body) == (200, ("cut", k)), (k, status, body)
        status, _, body = MOCK.post("/v1/messages", ask(task))  # the same again: fine now
        assert status == 200 and body.endswith(b'{"type":"message_stop"}\n\n'), (k, body)


def test_faults():
    wanted = {
        "reset": (0, None), "close": (0, None), "eof:100": (200, 100), "empty200": (200, 0),
        "529": (529, b"overloaded_error"), "500": (500, b"api_error"),
        "401": (401, b"authentication_error"), "402": (402, b"billing_error"),
        "403": (403, b"permission_error"), "404": (404, b"not_found_error"),
        "413": (413, b"request_too_large"), "html500": (500, b"<html>"),
        "html200": (200, b"<html>"), "json200": (200, b"overloaded_error"),
        "quota": (400, b"credit balance is too low"), "overflow": (400, b"prompt is too long: 200001 tokens > 200000 maximum"),
        "comments:2": (200, b": OPENROUTER PROCESSING\n\n"), "error:3": (200, b"event: error"),
        "half-tool": (200, b"max_tokens"), "refusal": (200, b'"refusal"'),
        "pause": (200, b"pause_turn"), "empty": (200, b"end_turn"),
        "window": (200, b"model_context_window_exceeded"), "bad-utf8": (200, b"\xff\xc0\x80"),
        "surrogate": (200, b"\\ud800 and"), "nul": (200, b"a\\u0000b"),
        "nul:1": (200, b'"partial_json":"{\\"pa'), "bad-json:3": (200, b'"index":0,\n\n'),
        "long-name:10240": (200, b"n" * 10240), "bad-name": (200, b'"rm\\n"'),
        "unknown-tool": (200, b"no_such_tool"), "args-concat": (200, b"{\\\"b\\\":2}"),
        "text-call": (200, b"<tool_call>"), "no-submit": (200, b"end_turn"),
        "big:100000": (200, b"sixteen bytes...sixteen"), "deep:100": (200, b"[" * 40),
    }
    for fault, (status, found) in wanted.items():
        got, _, body = MOCK.post("/v1/messages", ask(f"[[mock chunks=1 fault={fault}]]"))
        assert got == status, (fault, got, body)
        if isinstance(found, int):
            assert len(body) == found, (fault, body)
        elif found is not None:
            assert found in body, (fault, body)


def test_no_end():
    _, _, body = MOCK.post("/v1/messages", ask("[[mock fault=no-end]]"))
    assert body.endswith(b"\n\n") and b"message_delta" in body and b"message_stop" not in body
    _, _, body = MOCK.post("/v1/messages", ask("args [[mock fault=nul:1]]"))
    assert b"a\\u0000b" in body.split(b"partial_json", 1)[1]


def test_odd_calls():
    for fault, count, ids in (("calls:200", 200, 200), ("dup-ids", 2, 1)):
        _, _, body = MOCK.post("/v1/messages", ask(f"odd {fault} [[mock fault={fault}]]"))
        blocks, _ = message(body)
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert (len(calls), len(set(calls))) == (count, ids), fault


def test_times_and_turns():
    for _ in range(5):
        assert MOCK.post("/v1/messages", ask("five [[mock fault=529x5]]"))[0] == 529
    assert MOCK.post("/v1/messages", ask("five [[mock fault=529x5]]"))[0] == 200
    task = [{"role": "user", "content": "later [[mock fault=529@1]]"}]
    status, _, data = MOCK.post("/v1/messages", ask("", messages=task))
    assert status == 200
    blocks, _ = message(data)
    task += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results(blocks)}]
    assert MOCK.post("/v1/messages", ask("", messages=task))[0] == 529
    assert MOCK.post("/v1/messages", ask("", messages=task))[0] == 200


def test_retry_headers():
    for word, name, value in (("retry-after=3", "retry-after", "3"),
                              ("ms=250", "retry-after-ms", "250"),
                              ("should-retry=false", "x-should-retry", "false")):
        status, headers, _ = MOCK.post("/v1/messages", ask(f"{word} [[mock fault=429:{word}]]"))
        assert status == 429 and headers[name] == value, headers
    _, headers, _ = MOCK.post("/v1/messages", ask("date [[mock fault=429:date=30]]"))
    assert headers["retry-after"].endswith(" GMT"), headers


def test_quirks():
    for quirk, found in (("crlf", b"\r\n\r\n"), ("cr", b"\r\r"), ("bom", b"\xef\xbb\xbfevent"),
                         ("spaces", b"}   \n\n"), ("ping", b"event: ping"),
                         ("unknown", b"mock_delta"), ("sealed", b'"seal":"'),
                         ("redacted", b"redacted_thinking"), ("multi-data", b"data: {\ndata: "),
                         ("comments", b": OPENROUTER PROCESSING")):
        _, _, body = MOCK.post("/v1/messages", ask(f"quirk [[mock quirk={quirk}]]"))
        assert found in body, (quirk, body)
    _, _, body = MOCK.post("/v1/messages", ask("quirk [[mock quirk=no-event]]"))
    assert b"event:" not in body and b"message_stop" in body
    _, _, body = MOCK.post("/v1/messages", ask("quirk [[mock quirk=split]]"))
    assert message(body)[1] == "tool_use"


def chat(text, path="/v1/chat/completions", **more):
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}]
    body = {"model": "gpt-4o", "stream": True, "tools": tools,
            "messages": [{"role": "user", "content": text}], **more}
    status, _, data = MOCK.post(path, body, {"authorization": "Bearer k",
                                             "content-type": "application/json"})
    return status, data


def deltas(data):
    return [c["choices"][0]["delta"] for c in map(json.loads, events(data)[:-1])
            if c.get("choices")]


def test_chat_completions():
    status, data = chat("one", stream_options={"include_usage": True})
    assert status == 200 and events(data)[-1] == "[DONE]", data
    calls = [d["tool_calls"][0] for d in deltas(data) if "tool_calls" in d]
    assert calls[0]["id"].startswith("call_") and calls[0]["function"]["name"] == "read_file"
    assert json.loads("".join(c["function"]["arguments"] for c in calls)) == {"path": "mock"}
    assert json.loads(events(data)[-2])["usage"]["prompt_tokens"] > 0
    _, data = chat("two", "/api/v1/chat/completions")
    assert json.loads(events(data)[-2])["usage"]["cost"] > 0


def test_chat_quirks():
    for quirk, check in (
            ("index0", lambda calls: {c["index"] for c in calls} == {0}),
            ("no-index", lambda calls: all("index" not in c for c in calls)),
            ("no-ids", lambda calls: all("id" not in c for c in calls)),
            ("args-object", lambda calls: isinstance(calls[0]["function"]["arguments"], dict)),
            ("args-whole", lambda calls: calls[0]["function"]["arguments"] == '{"path":"mock"}')):
        _, data = chat(f"[[mock calls=2 quirk={quirk}]]")
        calls = [d["tool_calls"][0] for d in deltas(data) if "tool_calls" in d]
        assert calls and check(calls), (quirk, calls)
    assert events(chat("[[mock quirk=no-done]]")[1])[-1] != "[DONE]"
    assert '"finish_reason":"stop"' in events(chat("[[mock quirk=finish-stop]]")[1])[-2]
    assert b'"usage"' not in chat("[[mock quirk=no-usage]]")[1]
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
    for turn in range(3):
        connection.request("POST", "/v1/messages", iter([body[:100], body[100:]]),
                           dict(HEADERS, **{"x-mock-conversation": f"c{turn}"}),
                           encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read().endswith(b"\n\n")
    connection.close()


def test_tls():
    context = ssl.create_default_context(cafile=MOCK.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", MOCK.port["tls"], context=context)
    status, _, data = MOCK.post("/v1/messages", ask("over tls"), connection=connection)
    assert status == 200 and message(data)[1] == "tool_use"
    connection.close()
    for bad in ("expired", "name", "self", "garbage"):
        try:
            with socket.create_connection(("127.0.0.1", MOCK.port[bad])) as s:
                context.wrap_socket(s, server_hostname="127.0.0.1")
            raise AssertionError(f"{bad} was taken")
        except ssl.SSLError:
            pass


def curl(*args):
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", "--cacert", MOCK.ca, *args],
                          capture_output=True, check=False)
    return done.returncode, done.stdout


def test_http2():
    if shutil.which("curl") is None:
        print("# no curl: HTTP/2 is tested by ava's own client only")
        return
    url = f"https://127.0.0.1:{MOCK.port['tls']}/v1/messages"
    headers = [part for k, v in HEADERS.items() for part in ("-H", f"{k}: {v}")]
    code, out = curl(*headers, "-w", "%{http_version}", "-d", json.dumps(ask("over h2")), url)
    assert code == 0 and out.endswith(b"\n\n2"), out
    code, out = curl(*headers, "-d", json.dumps(ask("h2 [[mock fault=cut:300]]")), url)
    assert code == 92 and len(out) == 300, (code, out)
    # many streams on one connection
    many = [part for i in range(40)
            for part in ("--next", "--cacert", MOCK.ca, *headers, "-d", json.dumps(ask(f"stream {i}")), url)][1:]
    code, out = curl("--parallel", "--parallel-max", "40", *many)
    assert code == 0 and out.count(b'"message_stop"}') == 40, code


def test_a_client_that_leaves_is_counted():
    before = MOCK.get("/stats")["gone"]
    body = json.dumps(ask("leave [[mock fault=stall:100]]")).encode()
    head = "".join(f"{k}: {v}\r\n" for k, v in HEADERS.items())
    with socket.create_connection(("127.0.0.1", MOCK.port["plain"])) as s:
        s.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n"
                  .encode() + body)
        assert s.recv(15) == b"HTTP/1.1 200 OK"
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    while MOCK.get("/stats")["gone"] == before:
        pass
    assert MOCK.get("/stats")["active"] == 0


def test_account():
    MOCK.get("/stats?clear")
    MOCK.post("/v1/messages", ask("counted"))
    MOCK.post("/v1/messages", ask("refused", max_tokens=0))
    MOCK.post("/v1/messages", b"{")
    stats = MOCK.get("/stats")
    assert (stats["requests"], stats["done"], stats["refused"]) == (3, 1, 2), stats
    rows = MOCK.get("/requests?limit=2")
    assert [r["number"] for r in rows] == [2, 3] and "greater than" in rows[0]["error"], rows
    status, _, _ = MOCK.post("/plan", {"rules": [{"model": "claude-haiku*", "play": "fault=503"}]})
    assert status == 200
    assert MOCK.post("/v1/messages", ask("ruled", "claude-haiku-4-5"))[0] == 503
    assert MOCK.post("/v1/messages", ask("ruled", "claude-sonnet-4-5"))[0] == 200
    assert MOCK.post("/plan", {"rules": [{"play": "fault=nonsense"}]})[0] == 400
    assert MOCK.post("/plan", {"rules": []})[0] == 200


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
    folder = tempfile.mkdtemp(prefix="ava-mock-")
    MOCK = Mock(folder)
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
    shutil.rmtree(folder)
    if code != 0:
        print(f"not ok {len(tests) + 1} - mock-models ended with code {code}")
    return 1 if failed or code != 0 else 0


if __name__ == "__main__":
    MOCK_PATH = sys.argv[1]
    sys.exit(main())
