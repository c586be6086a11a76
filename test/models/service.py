"""A model service that answers with whatever bytes it is told to, and the parts that such answers are
made of. mock-models (doc/MOCK.md) is as strict as the services are; this one is as wrong as the world.

A request belongs to the row whose name stands in its first user message as `[row NAME]`. The row's script is a
function of the number of the request (from 1) and the request; it gives the bytes of the answer, or
None when it has written to the connection itself."""

import json
import re
import socket
import threading

ROW = re.compile(rb"\[row ([\w.-]+)\]")


class Request:
    """`body` is the JSON of a POST ({} where there is none), `headers` have names in lower case; `conn` is the socket,
    for answers that take their time."""

    def __init__(self, method, path, headers, raw, conn):
        self.method, self.path, self.headers, self.raw, self.conn = method, path, headers, raw, conn
        try:
            self.body = json.loads(raw) if raw else {}
        except ValueError:
            self.body = {}

    def messages(self, role=None):
        lines = self.body.get("messages") or self.body.get("input") or []
        return [m for m in lines if role is None or m.get("role") == role]

    def tokens(self):
        """As many as services count: a quarter of the bytes."""
        return len(self.raw) // 4

    def most_output(self):
        return (self.body.get("max_tokens") or self.body.get("max_completion_tokens")
                or self.body.get("max_output_tokens") or 0)


class Service:
    """`gets`: what the paths of GET (and of POSTs that are no model call, as /api/show) answer: bytes, or a
    function of the request. Every request of a row is kept in seen[NAME]."""

    def __init__(self, rows=(), gets=None):
        self.rows = {row.name: row for row in rows}
        self.gets = gets or {}
        self.seen, self.lock = {}, threading.Lock()
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(200)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        source = conn.makefile("rb")
        try:
            while (request := read_request(source, conn)) is not None:
                answer = self.answer(request)
                if answer is None:
                    break
                conn.sendall(answer)
                head = answer.split(b"\r\n\r\n")[0].lower()
                if b"connection: close" in head or not (b"content-length" in head or b"chunked" in head):
                    break
        except OSError:
            pass
        finally:
            try:
                conn.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            source.close()
            conn.close()

    def answer(self, request):
        other = self.gets.get(request.path)
        if request.method == "GET" or other is not None:
            if other is None:
                other = resp(200, {"object": "list", "data": []}) if request.path.endswith("/models") else \
                    resp(404, {"error": {"message": "not found"}})
            return other(request) if callable(other) else other
        name = ROW.search(request.raw)
        name = name.group(1).decode() if name else None
        row = self.rows.get(name) if name else None
        if row is None:
            return resp(404, {"error": {"message": f"no row {name}", "type": "not_found_error"}})
        with self.lock:
            seen = self.seen.setdefault(name, [])
            seen.append(request)
            n = len(seen)
        return row.script(n, request)


def read_request(source, conn):
    line = source.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode("latin1").split(" ", 2)
    headers = {}
    while (line := source.readline().decode("latin1").rstrip("\r\n")):
        key, value = line.split(":", 1)
        headers[key.strip().lower()] = value.strip()
    return Request(method, path, headers, source.read(int(headers.get("content-length", 0))), conn)


# ---- answers. `body` may be bytes, text, or what becomes JSON.

def to_bytes(body):
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def resp(status, body, kind="application/json", **headers):
    body = to_bytes(body)
    more = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body


def error(status, message, **members):
    return resp(status, {"error": {"message": message, **members}})


def sse(*events, **headers):
    """A stream whose end the connection's end says, as many small servers have it."""
    more = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return (f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{more}connection: close\r\n\r\n").encode() + \
        b"".join(to_bytes(e) for e in events)


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def piece(*events):
    """One chunk of a chunked body."""
    body = b"".join(to_bytes(e) for e in events)
    return b"%x\r\n%s\r\n" % (len(body), body)


def chunked(*events):
    return CHUNKED + piece(*events) + b"0\r\n\r\n"


# ---- chat completions

DONE = "data: [DONE]\n\n"


def ev(event):
    return "data: " + json.dumps(event) + "\n\n"


def chunk(delta, finish=None, **members):
    return ev({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
               "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **members})


def usage(prompt=None, completion=None, **members):
    """The last chunk; without figures it has none that could be."""
    return ev({"id": "c1", "object": "chat.completion.chunk", "choices": [],
               "usage": {"prompt_tokens": prompt, "completion_tokens": completion,
                         "total_tokens": (prompt or 0) + (completion or 0), **members}})


def honest(request, completion=30):
    return usage(request.tokens(), completion)


def tool_call(n, name, args, **members):
    """One call of a delta; `args` a text, or what becomes one."""
    args = args if isinstance(args, str) or args is None else json.dumps(args)
    return {"index": 0, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": args}, **members}


def call(n, request, name, args, finish="tool_calls", **members):
    """A whole reply with one call."""
    return sse(chunk({"role": "assistant", "content": None}), chunk({"tool_calls": [tool_call(n, name, args, **members)]}),
               chunk({}, finish), honest(request), DONE)


RESULT = {"summary": "ok done", "output": {"a": 1}, "confidence": 0.9}


def submit(n, request, **members):
    return call(n, request, "submit_result", {**RESULT, **members})


def text(request, words, finish="stop"):
    return sse(chunk({"role": "assistant", "content": words}), chunk({}, finish), honest(request), DONE)


def then_submit(first):
    """The first answer, then a result."""
    return lambda n, request: first(n, request) if n == 1 else submit(n, request)


# ---- Messages form

def aev(kind, **members):
    return f"event: {kind}\ndata: " + json.dumps({"type": kind, **members}) + "\n\n"


def astart(request, **used):
    used = used or {"input_tokens": request.tokens(), "output_tokens": 1}
    return aev("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "content": [],
                                         "model": "m", "usage": used})


def ablock(index, block, *deltas):
    return aev("content_block_start", index=index, content_block=block) + \
        "".join(aev("content_block_delta", index=index, delta=d) for d in deltas) + \
        aev("content_block_stop", index=index)


def atext(index, words):
    return ablock(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": words})


def athink(index, words, signature="c2ln"):
    return ablock(index, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": words},
                  *([{"type": "signature_delta", "signature": signature}] if signature else []))


def atool(index, n, name, args):
    return ablock(index, {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": {}},
                  {"type": "input_json_delta", "partial_json": json.dumps(args)})


def aend(reason="tool_use", **used):
    return aev("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=used or {"output_tokens": 30}) + \
        aev("message_stop")


def acall(n, request, name, args):
    return sse(astart(request), atool(0, n, name, args), aend())


def asubmit(n, request, **members):
    return acall(n, request, "submit_result", {**RESULT, **members})


def aerror(status, kind, message, **headers):
    return resp(status, {"type": "error", "error": {"type": kind, "message": message}}, **headers)
