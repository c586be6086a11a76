#!/usr/bin/python3
"""An HTTP/2 server that gives up connections and streams, for test_http_client_tls.c.

usage: tls_http2.py DIR

Writes DIR/http2.pem (certificate and key, its own authority) and prints its
port. The body of a request says what becomes of it the first time; later, and
else, it is answered: "refuse" GOAWAY before it was looked at, "last" an answer
and GOAWAY: nothing new may begin, "internal" and "refused" RST_STREAM with that
code, "break" the connection ends. Ends with its standard input."""

import socket
import struct
import sys
import threading

import tls_context

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM = 0, 2, 7
seen = set()
lock = threading.Lock()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def read(conn, n):
    data = b""
    while len(data) < n:
        got = conn.recv(n - len(data))
        if not got:
            raise EOFError
        data += got
    return data


def answer(conn, stream):
    conn.sendall(frame(HEADERS, END_HEADERS, stream, b"\x88") +  # :status 200
                 frame(DATA, END_STREAM, stream, b"ok"))


def goaway(conn, last):
    conn.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", last, NO_ERROR)))


def request(conn, stream, word):
    """One whole request has come. False: the connection is over."""
    with lock:
        first = word not in seen
        seen.add(word)
    if first and word == b"refuse":
        goaway(conn, 0)
        return False
    if first and word == b"break":
        return False
    if first and word in (b"internal", b"refused"):
        code = INTERNAL_ERROR if word == b"internal" else REFUSED_STREAM
        conn.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", code)))
        return True
    answer(conn, stream)
    if first and word == b"last":
        goaway(conn, stream)
    return True


def serve(conn):
    bodies = {}
    try:
        read(conn, 24)  # the preface
        conn.sendall(frame(SETTINGS, 0, 0))
        while True:
            head = read(conn, 9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big") & 0x7fffffff
            payload = read(conn, size)
            if kind == SETTINGS and not flags & ACK:
                conn.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                conn.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA:
                bodies[stream] = bodies.get(stream, b"") + payload
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                if not request(conn, stream, bodies.pop(stream, b"")):
                    break
    except (EOFError, OSError):
        pass
    conn.close()


def handshake(context, raw):
    try:
        serve(context.wrap_socket(raw, server_side=True))
    except OSError:
        raw.close()


def accept(context, listener):
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=handshake, args=(context, raw), daemon=True).start()


def main():
    pem = sys.argv[1] + "/http2.pem"
    context = tls_context.context(pem, "h2")
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(context, listener), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
