"""The client-server API of Matrix as far as ava uses it, with the rules that its clients must keep, and faults.

    matrix_server.py TOKEN      serves on a free port, printed as `port N`; TOKEN is that of @ava:test

A test speaks to it by JSON: POST /test/say {"from","text","reply"} and /test/react {"from","event","key"} are a person's
(a room of their own, !<from>:test, into which /test/invite {"from","encrypted","crowd"} invites Ava), /test/messages what they
see: [{"event","room","text","edits","keys"}]. /test/plan {"call","when","text","kill","status","body","times"}: at the next
calls of that kind (sync, send, edit, key, join, leave, typing, upload) with that text in their body, before or after their
effect, the process `kill` is killed, or they are answered with `status`. /test/wrong: rules that were broken."""

import http.server
import json
import os
import signal
import sys
import threading
import time
import urllib.parse

US = "@ava:test"
TOKEN = sys.argv[1]
world = threading.Condition()
stream = []  # (room, event), in the order of the server; `since` is a place in it
rooms = {}  # room: {"in": whether we are, "from": place at which we came, "crowd": how many there are}
invited = []  # (place in the stream, room, who)
sent = {}  # (room, transaction): event id
wrong, plans = [], []
calls = {}  # kind: how many


def put(room, kind, sender, content, **more):
    event = {"type": kind, "sender": sender, "content": content, "event_id": f"$e{len(stream)}:test",
             "origin_server_ts": int(time.time() * 1000), **more}
    stream.append((room, event))
    world.notify_all()
    return event["event_id"]


def own_room(who):
    return f"!{who}:test"


def shown():
    out = {}
    for room, e in stream:
        relates = e["content"].get("m.relates_to", {})
        if e["type"] == "m.reaction" and relates["event_id"] in out:
            out[relates["event_id"]]["keys"].append(relates["key"])
        elif e["type"] == "m.room.message" and e["sender"] == US and relates.get("rel_type") == "m.replace":
            out[relates["event_id"]]["text"] = e["content"]["m.new_content"]["body"]
            out[relates["event_id"]]["edits"] += 1
        elif e["type"] == "m.room.message" and e["sender"] == US:
            out[e["event_id"]] = {"event": e["event_id"], "room": room, "text": e["content"]["body"], "edits": 0, "keys": [],
                                  "html": e["content"].get("formatted_body", ""), "url": e["content"].get("url", "")}
    return list(out.values())


def sync(query):
    since = int(query["since"][0][1:]) if "since" in query else 0
    end = time.monotonic() + int(query.get("timeout", ["0"])[0]) / 1000
    if since > len(stream):
        wrong.append(f"since s{since} was never given")
    while "since" in query and len(stream) <= since and not any(at > since for at, _, _ in invited) and time.monotonic() < end:
        world.wait(max(end - time.monotonic(), 0))
    now = max([len(stream)] + [at for at, _, _ in invited])
    join, invite = {}, {}
    for room, about in rooms.items():
        new = [e for at, (r, e) in enumerate(stream) if r == room and at >= max(since, about["from"])]
        if about["in"] and new:
            join[room] = {"timeline": {"events": new[-100:], "limited": len(new) > 100}, "state": {"events": about["state"]},
                          "summary": {"m.joined_member_count": about["crowd"]}}
    for at, room, who in invited:
        if at > since and not rooms[room]["in"]:
            invite[room] = {"invite_state": {"events": [{"type": "m.room.member", "sender": who, "state_key": US,
                                                         "content": {"membership": "invite"}}]}}
    return {"next_batch": f"s{now}", "rooms": {"join": join, "invite": invite}}


def kind_of(path, body):
    if path.endswith("/sync"):
        return "sync"
    if "/send/m.reaction/" in path:
        return "key"
    if "/send/" in path:
        return "edit" if body.get("m.relates_to", {}).get("rel_type") == "m.replace" else "send"
    return path.rsplit("/", 1)[-1] if "/typing/" not in path else "typing"


def send(words, body):
    """rooms/ROOM/send/TYPE/TRANSACTION"""
    room, kind, transaction = words[1], words[3], words[4]
    if not rooms.get(room, {}).get("in"):
        return 403, {"errcode": "M_FORBIDDEN", "error": "not in it"}
    if len(json.dumps(body).encode()) > 65536:
        wrong.append("an event is too large")
        return 413, {"errcode": "M_TOO_LARGE", "error": "too large"}
    if (room, transaction) not in sent:
        sent[room, transaction] = put(room, kind, US, body)
    return 200, {"event_id": sent[room, transaction]}


def answer(method, path, query, body, raw):
    words = [urllib.parse.unquote(w) for w in path.split("/")[4:]] if path.startswith("/_matrix/client/v3/") else []
    if path == "/_matrix/media/v3/upload":
        return 200, {"content_uri": f"mxc://test/{len(raw)}"}
    if words == ["account", "whoami"]:
        return 200, {"user_id": US}
    if words == ["sync"]:
        return 200, sync(query)
    if method == "PUT" and len(words) == 5 and words[2] == "send":
        return send(words, body)
    if method == "PUT" and len(words) == 4 and words[2] == "typing" and words[3] == US:
        return 200, {}
    if method == "POST" and len(words) == 3 and words[2] in ("join", "leave") and words[1] in rooms:
        about = rooms[words[1]]
        about["in"] = words[2] == "join"
        about["from"] = len(stream)
        put(words[1], "m.room.member", US, {"membership": words[2]}, state_key=US)
        return 200, {"room_id": words[1]}
    wrong.append(f"{method} {path}")
    return 404, {"errcode": "M_UNRECOGNIZED", "error": "no such call"}


def test(what, body):
    who = body.get("from", "ben")
    if what == "invite":
        extra = body.get("crowd", 0)
        state = [{"type": "m.room.encryption", "sender": f"@{who}:test", "event_id": f"$state-{who}:test", "state_key": "",
                  "content": {"algorithm": "m.megolm.v1.aes-sha2"}}] if body.get("encrypted") else []
        rooms[own_room(body.get("room", who))] = {"in": False, "from": len(stream), "crowd": 2 + extra, "state": state}
        invited.append((len(stream) + 1, own_room(body.get("room", who)), f"@{who}:test"))
        put("!nobody:test", "m.room.member", "@nobody:test", {})
        return {}
    if what == "say":
        content = {"msgtype": body.get("type", "m.text"), "body": body["text"]}
        if body.get("reply"):
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": body["reply"]}}
        return {"event": put(own_room(body.get("room", who)), "m.room.message", f"@{who}:test", content)}
    if what == "react":
        return {"event": put(own_room(body.get("room", who)), "m.reaction", f"@{who}:test", {
            "m.relates_to": {"rel_type": "m.annotation", "event_id": body["event"], "key": body["key"]}})}
    if what == "plan":
        plans.append(dict({"when": "before", "text": "", "times": 1}, **body))
        return {}
    return {"messages": shown(), "wrong": wrong, "plans": plans, "calls": calls, "rooms": rooms}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def planned(self, kind, raw, when):
        """Answers by a plan, or kills; true: that was the answer."""
        for plan in plans:
            if plan["call"] != kind or plan["when"] != when or plan["text"] not in raw:
                continue
            plan["times"] -= 1
            if plan["times"] == 0:
                plans.remove(plan)
            if plan.get("kill"):
                os.kill(plan["kill"], signal.SIGKILL)
                self.close_connection = True
                return True
            self.reply(plan["status"], plan.get("body", {}))
            return True
        return False

    def do(self):
        url = urllib.parse.urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8")
        try:
            body = json.loads(raw) if raw and "upload" not in url.path else {}
        except ValueError:
            body = {}
        with world:
            if url.path.startswith("/test/"):
                self.reply(200, test(url.path[6:], body))
                return
            if self.headers.get("Authorization") != "Bearer " + TOKEN or TOKEN in self.path:
                self.reply(401, {"errcode": "M_UNKNOWN_TOKEN", "error": "?"})
                return
            kind = kind_of(url.path, body)
            calls[kind] = calls.get(kind, 0) + 1
            words = body.get("m.new_content", body).get("body", "") if kind in ("send", "edit") else raw
            if self.planned(kind, words, "before"):
                return
            status, said = answer(self.command, url.path, urllib.parse.parse_qs(url.query), body, raw)
            if not self.planned(kind, words if kind != "sync" else json.dumps(said, ensure_ascii=False), "after"):
                self.reply(status, said)

    do_GET = do_POST = do_PUT = do


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
