#!/usr/bin/python3
"""A name server for tests, on 127.0.0.1:53. usage: name_server.py TABLE

TABLE has lines "NAME ADDRESS,ADDRESS...", read anew for each question; every answer is good for
0 seconds. AAAA records are the addresses with a colon. What is not there does not exist."""

import ipaddress
import socket
import struct
import sys


def addresses(name, kind):
    with open(sys.argv[1], encoding="ascii") as table:
        for line in table:
            known, _, rest = line.strip().partition(" ")
            if known == name:
                return [a for a in rest.split(",") if (":" in a) == (kind == 28)]
    return None


def answer(question):
    number, flags, _, _, _, _ = struct.unpack(">6H", question[:12])
    at, labels = 12, []
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode("ascii"))
        at += 1 + question[at]
    kind, _ = struct.unpack(">2H", question[at + 1:at + 5])
    found = addresses(".".join(labels).lower(), kind)
    records = b"".join(b"\xc0\x0c" + struct.pack(">2HIH", kind, 1, 0, len(raw)) + raw
                       for raw in (ipaddress.ip_address(a).packed for a in found or []))
    head = struct.pack(">6H", number, 0x8180 | (3 if found is None else 0), 1, len(found or []), 0, 0)
    return head + question[12:at + 5] + records


server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    data, peer = server.recvfrom(512)
    server.sendto(answer(data), peer)
