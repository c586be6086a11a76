#!/usr/bin/env python3
"""A Unix socket before the daemon's, whose connections are lost after a request was
taken.

    cut_proxy.py FRONT BACK PATH N [GO]

Hands on what comes at FRONT to BACK. Of the first N requests whose line names PATH
the answer is read from the daemon, so that it was taken, and then the connection is
closed instead. Prints "ready", then a line for each that was cut. With GO they are not
cut but held back until there is a file of that name: a line "held" for each."""

import os
import socket
import sys
import threading
import time

FRONT, BACK, PATH, N = sys.argv[1], sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
GO = sys.argv[5] if len(sys.argv) > 5 else None
LOCK = threading.Lock()
left = N


def to_be_cut(data):
    """Is this the beginning of a request that is lost?"""
    global left
    with LOCK:
        if left == 0 or PATH not in data.split(b"\r\n", 1)[0]:
            return False
        left -= 1
        return True


def hold():
    print("held", flush=True)
    while not os.path.exists(GO):
        time.sleep(0.01)


def serve(front):
    back = socket.socket(socket.AF_UNIX)
    back.connect(BACK)
    cut = threading.Event()

    def answers():
        while data := back.recv(65536):
            if cut.is_set():
                print("cut", flush=True)
                break
            front.sendall(data)
        front.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=answers, daemon=True).start()
    try:
        while data := front.recv(65536):
            if to_be_cut(data):
                if GO:
                    hold()
                else:
                    cut.set()
            back.sendall(data)
    except OSError:
        pass
    back.close()
    front.close()


listening = socket.socket(socket.AF_UNIX)
listening.bind(FRONT)
listening.listen(16)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
