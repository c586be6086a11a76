"""A homeserver, and a person before it, over the client-server API: just what a conversation with Ava takes."""

import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

CONFIG = """server_name: local.test
pid_file: {0}/pid
listeners: [{{port: {1}, type: http, tls: false, bind_addresses: [127.0.0.1], resources: [{{names: [client], compress: false}}]}}]
database: {{name: sqlite3, args: {{database: {0}/hs.db}}}}
log_config: {0}/log.yaml
media_store_path: {0}/media
registration_shared_secret: shared
report_stats: false
macaroon_secret_key: macaroon
form_secret: form
signing_key_path: {0}/key
trusted_key_servers: []
suppress_key_server_warning: true
rc_login: {{address: {{per_second: 100, burst_count: 100}}, account: {{per_second: 100, burst_count: 100}}}}
"""
LOG = "version: 1\nhandlers: {{file: {{class: logging.FileHandler, filename: {0}/log}}}}\nroot: {{level: WARNING, handlers: [file]}}\n"


def ask(url, body=None, token="", method=None):
    """(status, answer)"""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": "Bearer " + token} if token else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        return problem.code, json.loads(problem.read() or b"{}")


class Synapse:
    def __init__(self, python, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        for name, text in (("hs.yaml", CONFIG.format(folder, port)), ("log.yaml", LOG.format(folder))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run([os.path.join(os.path.dirname(python), "generate_signing_key"), "-o", os.path.join(folder, "key")], check=True)
        with open(os.path.join(folder, "out"), "wb") as out:
            self.process = subprocess.Popen([python, "-W", "ignore", "-m", "synapse.app.homeserver", "-c", os.path.join(folder, "hs.yaml")],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        end = time.monotonic() + 120
        while True:
            try:
                ask(self.url + "/_matrix/client/versions")
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.2)

    def register(self, name):
        """The access token of a new user."""
        url = self.url + "/_synapse/admin/v1/register"
        nonce = ask(url)[1]["nonce"]
        mac = hmac.new(b"shared", f"{nonce}\0{name}\0pass\0notadmin".encode(), hashlib.sha1).hexdigest()
        return ask(url, {"nonce": nonce, "username": name, "password": "pass", "admin": False, "mac": mac})[1]["access_token"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Person:
    def __init__(self, url, token):
        self.url, self.token, self.n = url + "/_matrix/client/v3/", token, 0

    def call(self, path, body=None, method=None):
        status, answer = ask(self.url + path, body, self.token, method)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    def room(self, whom, more=()):
        """A room of their own, to which `whom` is invited."""
        return self.call("createRoom", {"invite": [whom], "preset": "private_chat", "initial_state": list(more)})["room_id"]

    def send(self, room, kind, content):
        self.n += 1
        return self.call(f"rooms/{urllib.parse.quote(room)}/send/{kind}/{os.getpid()}-{self.n}", content, "PUT")["event_id"]

    def say(self, room, text, reply=""):
        content = {"msgtype": "m.text", "body": text}
        if reply:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply}}
        return self.send(room, "m.room.message", content)

    def react(self, room, event, key):
        return self.send(room, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": key}})

    def events(self, room):
        """All of them, oldest first."""
        return self.call(f"rooms/{urllib.parse.quote(room)}/messages?dir=b&limit=500")["chunk"][::-1]

    def messages(self, room, whose):
        """What a client shows of `whose` messages: {event: newest words}, in order."""
        shown = {}
        for e in self.events(room):
            relates = e["content"].get("m.relates_to", {})
            if e["sender"] != whose or e["type"] != "m.room.message":
                continue
            if relates.get("rel_type") == "m.replace":
                shown[relates["event_id"]] = e["content"]["m.new_content"]["body"]
            else:
                shown[e["event_id"]] = e["content"].get("body", "")
        return shown

    def keys(self, room, event):
        """The reactions below a message: (whose, key)."""
        return [(e["sender"], e["content"]["m.relates_to"]["key"]) for e in self.events(room)
                if e["type"] == "m.reaction" and e["content"].get("m.relates_to", {}).get("event_id") == event]
