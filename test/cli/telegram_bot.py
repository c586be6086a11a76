#!/usr/bin/env python3
"""The Bot API of Telegram, as strict as it is, for one bot.

    telegram_bot.py TOKEN [PORT]

Listens on 127.0.0.1; "port N" is its first line. What a person does comes over /test/:
say and press make updates, messages lists what stands in the chats, calls what was asked by which address, and until when,
wrong what no client may do, plan lets the next calls of a method fail (text, chat: those only; body: with these
bytes), be held until release, or kills a process before or after one is carried out; what ASKED has is answered as text,
at once or, where `wait` is not 0, within a second when it `is` that or at `least` that many; messages at `wait` 2
when there is something new. A text is measured in UTF-16; offsets confirm; a second getUpdates ends the first with 409; an edit that changes
nothing, a press answered late, a chat that never wrote: each with its own 400 or 403."""

import email
import http.server
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import urllib.parse

TOKEN = sys.argv[1]
LOCK = threading.Condition()
updates, messages, calls, wrong, plans = [], [], [], [], []
presses, blocked, wrote = {}, set(), set()
next_update, next_message, poller = 1000, 1, 0
version = shown = 0  # of all this; what the last answer to messages had
JOINS = {0x200D, 0xFE0F, 0x20E3} | set(range(0x300, 0x370)) | set(range(0x1F3FB, 0x1F400))


def changed():
    global version
    version += 1
    LOCK.notify_all()


class Refused(Exception):
    def __init__(self, status, what, **more):
        super().__init__(what)
        self.answer = dict({"ok": False, "error_code": status, "description": what}, **more)


def bad(what):
    raise Refused(400, "Bad Request: " + what)


def need(ok, what):
    if not ok and what not in wrong:
        wrong.append(what)


def check_text(text, most, name="text"):
    if not isinstance(text, str):
        bad(name + " must be a string")
    if len(text.encode()) > 32768:
        bad("Text is too long")
    if not text.strip():
        bad("message text is empty")
    if len(text.encode("utf-16-le")) // 2 > most:
        bad("message is too long")
    need(ord(text[0]) not in JOINS and ord(text[-1]) != 0x200D, "a character is torn")
    need(TOKEN not in text, "the token in a text")


def check_chat(args):
    chat = args.get("chat_id")
    if not isinstance(chat, int):
        bad("chat_id is empty")
    if chat not in wrote:
        raise Refused(403, "Forbidden: bot can't initiate conversation with a user")
    if chat in blocked:
        raise Refused(403, "Forbidden: bot was blocked by the user")
    return chat


def check_markup(args):
    markup = args.get("reply_markup", {})
    for row in markup.get("inline_keyboard", []):
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                bad("BUTTON_DATA_INVALID")
    return markup


def new_message(chat, text, **more):
    global next_message
    one = dict({"message_id": next_message, "chat": chat, "text": text, "edits": 0}, **more)
    next_message += 1
    messages.append(one)
    return {"message_id": one["message_id"], "chat": {"id": chat, "type": "private"}, "text": text}


def do_send(args):
    chat = check_chat(args)
    if "parse_mode" in args:
        bad("can't parse entities: none is expected here")
    check_text(args.get("text"), 4096)
    need(args.get("link_preview_options") == {"is_disabled": True}, "a preview fetches what a text names")
    return new_message(chat, args["text"], markup=check_markup(args))


def do_document(args):
    chat = check_chat(args)
    check_text(args.get("caption", "x"), 1024, "caption")
    return new_message(chat, args.get("caption", ""), document=args["document"], name=args["name"])


def find(args):
    for m in messages:
        if m["message_id"] == args.get("message_id") and m["chat"] == args.get("chat_id"):
            return m
    bad("message to edit not found")


def do_edit(args):
    check_chat(args)
    m, markup = find(args), check_markup(args)
    check_text(args.get("text"), 4096)
    need(args.get("link_preview_options") == {"is_disabled": True}, "a preview fetches what a text names")
    if m["text"] == args["text"] and m.get("markup", {}) == markup:
        bad("message is not modified: specified new message content and reply markup are exactly the "
            "same as a current content and reply markup of the message")
    m.update(text=args["text"], markup=markup, edits=m["edits"] + 1)
    return {"message_id": m["message_id"]}


def do_markup(args):
    check_chat(args)
    m = find(args)
    if m.get("markup", {}) == check_markup(args):
        bad("message is not modified")
    m["markup"] = args.get("reply_markup", {})
    return {"message_id": m["message_id"]}


def do_answer(args):
    press = presses.get(args.get("callback_query_id"))
    if not press or time.monotonic() - press["at"] > 15:
        bad("query is too old and response timeout expired or query ID is invalid")
    press["answers"].append(args.get("text", ""))
    return True


def do_updates(args):
    global poller
    poller += 1
    mine, offset = poller, args.get("offset", 0)
    need(args.get("allowed_updates") == ["message", "callback_query"], "allowed_updates")
    need(args.get("timeout", 0) <= 50 and 1 <= args.get("limit", 100) <= 100, "timeout, limit")
    changed()
    # What is confirmed is gone; an offset beyond all there is confirms nothing of another life.
    if offset:
        updates[:] = [u for u in updates if u["update_id"] >= offset or offset - u["update_id"] > 1 << 20]
    end = time.monotonic() + args.get("timeout", 0)
    while not updates and time.monotonic() < end and mine == poller and not args["gone"]() and not any(p["method"] == "getUpdates" and "status" in p for p in plans):
        LOCK.wait(0.5)
    planned("getUpdates")
    if mine != poller:
        raise Refused(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
    return updates[:args.get("limit", 100)]


def killed(method, when, args):
    for p in plans:
        if p["method"] == method and p.get("kill") and p["when"] == when and p["text"] in (args.get("text") or ""):
            plans.remove(p)
            os.kill(p["kill"], signal.SIGKILL)
            raise ConnectionError


def planned(method, args={}):
    for p in plans:
        if p["method"] == method and "status" in p and p.get("text", "") in (args.get("text") or "") and p.get("chat") in (None, args.get("chat_id")):
            while p.get("held") and p in plans:
                LOCK.wait(0.5)
            p["times"] -= 1
            if p["times"] <= 0 and p in plans:
                plans.remove(p)
            if p["status"] == 0:
                raise ConnectionError
            if "body" in p:
                raise Refused(p["status"], p["body"], body=p["body"])
            more = {"parameters": {"retry_after": p["retry_after"]}} if "retry_after" in p else {}
            raise Refused(p["status"], p.get("what", "planned"), **more)


METHODS = {"getMe": lambda args: {"id": int(TOKEN.split(":")[0]), "is_bot": True, "username": "kettle_bot"},
           "getUpdates": do_updates, "sendMessage": do_send, "sendDocument": do_document,
           "editMessageText": do_edit, "editMessageReplyMarkup": do_markup, "answerCallbackQuery": do_answer,
           "sendChatAction": lambda args: need(args["action"] == "typing", "an action that there is not") or True}


def add_update(**content):
    global next_update
    one = dict({"update_id": next_update}, **content)
    next_update += 1
    updates.append(one)
    changed()
    return one["update_id"]


def person(who):
    return {"id": who, "is_bot": False, "first_name": "Kettle", "username": "kettle"}


def test_say(o):
    global next_message
    who = int(o["from"])
    chat = o.get("chat", {"id": who, "type": "private"})
    wrote.add(chat["id"])
    blocked.discard(chat["id"])
    m = dict({"message_id": next_message, "date": int(time.time()), "from": person(who), "chat": chat}, **o.get("more", {}))
    next_message += 1
    if "text" in o:
        m["text"] = o["text"]
    if "reply" in o:
        m["reply_to_message"] = {"message_id": int(o["reply"]), "chat": chat}
    return {"message_id": m["message_id"], "update_id": add_update(**{o.get("as", "message"): m})}


def test_press(o):
    m = next(m for m in messages if m["message_id"] == o["message"])
    data = o.get("data")
    for row in m.get("markup", {}).get("inline_keyboard", []):
        for button in row:
            if button["text"] == o.get("button"):
                data = button["callback_data"]
    query = str(len(presses) + 1)
    presses[query] = {"at": time.monotonic(), "answers": []}
    add_update(callback_query={"id": query, "from": person(o["from"]), "data": data, "message": {
        "message_id": o.get("as_message", m["message_id"]),
        "chat": o.get("chat", {"id": o["from"], "type": "private"})}})
    return {"query": query, "data": data}


def having(o):
    return [m for m in messages if o.get("text", "") in m["text"] and o.get("n", str(m["message_id"])) == str(m["message_id"])]


ASKED = {"count": lambda o: len(having(o)),
         "number": lambda o: having(o)[-1]["message_id"] if having(o) else "null",
         "text": lambda o: "".join(m["text"] for m in having(o)),
         "buttons": lambda o: " ".join(b["text"] for m in having(o) for row in m.get("markup", {}).get("inline_keyboard", []) for b in row),
         "pressed": lambda o: len(presses[o["query"]]["answers"]) if o["query"] in presses else 0,
         "waiting": lambda o: len(updates)}


def asked(what, o):
    end = time.monotonic() + min(int(o["wait"]), 1)
    while True:
        answer = ASKED[what](o)
        left = end - time.monotonic()
        if left <= 0 or not ("is" in o and str(answer) != o["is"] or "least" in o and answer < int(o["least"])):
            return {"body": "%s\n" % answer}
        LOCK.wait(left)


def test(what, o):
    global next_update, shown
    if what in ASKED:
        return asked(what, o)
    if what == "say":
        return test_say(o)
    if what == "press":
        return test_press(o)
    if what == "again":
        updates.append(o)
        changed()
    if what == "update":
        return {"update_id": add_update(**o)}
    if what == "jump":
        next_update = o["to"]
    if what == "block":
        blocked.add(o["chat"])
    if what == "release":
        plans[:] = [p for p in plans if not p.get("held")]
        changed()
    if what == "plan":
        plans.append(dict({"times": 1}, **o))
        changed()
    if o.get("wait") == 2 and version == shown:
        LOCK.wait(1)
    shown = version
    return {"messages": messages, "calls": calls, "wrong": wrong, "presses": presses, "waiting": len(updates), "plans": len(plans)}


def parts_of(handler, body):
    head = "Content-Type: " + handler.headers["Content-Type"] + "\r\n\r\n"
    args = {}
    for part in email.message_from_bytes(head.encode() + body).get_payload():
        name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if part.get_filename():
            args["name"] = part.get_filename()
        args[name] = int(value) if name == "chat_id" else value.decode()
    return args


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    carried = 0  # calls on this connection

    def log_message(self, *args):
        pass

    def gone(self):
        """Has whoever asks closed the connection?"""
        return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        multi = self.headers.get("Content-Type", "").startswith("multipart/form-data")
        form = self.path.startswith("/test/") and not body.startswith(b"{")
        args = parts_of(self, body) if multi else dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)) if form else json.loads(body or b"{}")
        way = self.path.split("/")
        status, answer = 200, None
        try:
            with LOCK:
                if way[1] == "test":
                    answer = test(way[2], args)
                elif way[1] != "bot" + TOKEN:
                    raise Refused(401 if way[1].startswith("bot") else 404, "Unauthorized")
                else:
                    method = way[2]
                    self.carried += 1
                    need(self.carried == 1, "a connection that died of old age repeats a call: " + method)
                    call = {"method": method, "at": time.monotonic(), "chat": args.get("chat_id"), "by": self.client_address[0],
                            "text": args.get("text"), "message": args.get("message_id"), "offset": args.get("offset")}
                    calls.append(call)
                    args["gone"] = self.gone
                    killed(method, "before", args)
                    if method != "getUpdates":
                        planned(method, args)
                    try:
                        answer = {"ok": True, "result": METHODS[method](args)}
                    finally:
                        call["until"] = time.monotonic()
                    changed()
                    if method != "getUpdates" or answer["result"]:
                        killed(method, "after", args)
        except Refused as refused:
            status, answer = refused.answer["error_code"], refused.answer
        except ConnectionError:
            self.close_connection = True
            return
        text = (answer.get("body") or json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
