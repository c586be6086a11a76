"""What the page does to sign in and to sign (web/src/sign.ts), for tests that are no browser; the texts are
those of doc/SECURITY.md, "The page"."""

import hashlib
import hmac
import json
import secrets
import socket


def raw(port, data, patience=60):
    s = socket.create_connection(("127.0.0.1", port), patience)
    s.sendall(data)
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except (TimeoutError, ConnectionResetError):
        pass
    s.close()
    return got


def ask(port, method, path, body=None, **fields):
    """Status, head and body; a field of None is left out."""
    host = f"127.0.0.1:{port}"
    head = {"Host": host, "Connection": "close"}
    if body is not None:
        head |= {"Content-Type": "application/json", "Origin": f"http://{host}", "Content-Length": len(body.encode())}
    head |= {k.replace("_", "-"): v for k, v in fields.items()}
    lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in head.items() if v is not None]
    got = raw(port, ("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode())
    head, _, rest = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, head.decode(), rest


def mac(key, *lines):
    return hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()


class Key:
    """One that the daemon at `port` knows, or not."""

    def __init__(self, port, key):
        self.port, self.key, self.challenge, self.number = port, key, "", 0
        self.id = mac(key, "ava id").hex()[:32]

    def greeting(self, host=None):
        nonce, host = secrets.token_hex(16), host or f"127.0.0.1:{self.port}"
        return nonce, {"host": host, "id": self.id, "nonce": nonce, "mac": mac(self.key, "ava hello", host, nonce).hex()}

    def hello(self, port=None, greeting=None):
        """The key that follows; a status where it was refused."""
        nonce, said = greeting or self.greeting()
        status, _, body = ask(port or self.port, "POST", "/api/v1/login", json.dumps(said))
        if status != 200:
            return status
        answer = json.loads(body)
        assert answer["proof"] == mac(self.key, "ava daemon", said["host"], nonce, answer["challenge"]).hex(), "the daemon's proof"
        self.challenge = answer["challenge"]
        following = Key(self.port, mac(self.key, "ava key", said["host"], nonce, self.challenge))
        following.challenge = self.challenge
        return following

    def sign(self, method, path, body="", number=None, host=None):
        self.number = number or self.number + 1
        made = mac(self.key, "ava request", host or f"127.0.0.1:{self.port}", self.challenge, str(self.number), method,
                   hashlib.sha256(path.encode()).hexdigest(), hashlib.sha256(body.encode()).hexdigest())
        return f"Ava id={self.id}, n={self.number}, mac={made.hex()}"

    def ask(self, method, path, body=None, **fields):
        return ask(self.port, method, path, body, **{"Authorization": self.sign(method, path, body or ""), **fields})

    def status(self, *args, **fields):
        return self.ask(*args, **fields)[0]


def browser(url):
    """The browser's key, or a status, for an address of `ava dashboard`."""
    address, _, code = url.strip().partition("/#code=")
    return Key(int(address.rsplit(":", 1)[1]), bytes.fromhex(code)).hello()


def tab(url):
    key = browser(url)
    return key if isinstance(key, int) else key.hello()
