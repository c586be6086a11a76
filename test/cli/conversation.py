"""One conversation in every door, and what a person sees of it in each; played by test_conversation.sh, which says
where the services are. What is seen is compared with test/golden/conversation/DOOR.txt; with an argument it is
written there anew. Ids, times and folders are made the same; a line of what a run does now is left out."""

import json
import os
import re
import subprocess
import sys
import urllib.request

import acp
import mcp
import terminal
from api import AVA, answer, check, until

T = os.environ["T"]
SRC = T + "/src"
GOLDEN = os.environ["SRCDIR"] + "/test/golden/conversation/"
# What the person says, and what they see last before they say the next.
with open(GOLDEN + "said.json", encoding="utf-8") as f:
    STEPS = json.load(f)


def plain(text):
    """Without what is another in each world."""
    text = text.replace(T, "T")
    for letter in "PSM":
        ids = list(dict.fromkeys(re.findall(letter + r"-[0-9a-f]{6}\b", text)))
        for n, one in enumerate(ids, 1):
            text = text.replace(one, f"{letter}-{n}")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"~[\d-]+ minutes?", "~1 minute", text)  # it is learned of the runs before
    return re.sub(r"\(\d+(\.\d+)?s, ", "(1s, ", text)


def words(text):
    """Words alone: no marks of Markdown, no lines, no blanks."""
    return re.sub(r"[\s*`│|]+", "", plain(text))


# ---- doors

def at_terminal():
    steps = []
    for said, seen in STEPS:
        steps += [f"type {said}\\n", "see " + seen, "wait 1.5"]
    path = T + "/terminal"
    subprocess.run([sys.executable, terminal.__file__, "200", path, "see > ", *steps, "type ^D", "--", AVA, "chat"],
                   cwd=SRC, check=True, env=os.environ | {"TERM": "xterm-256color"})
    with open(path, encoding="utf-8") as f:
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", f.read())
    lines = [re.sub(r".*\r", "", line.rstrip("\r\n")) for line in shown.split("\n")]
    return "\n".join(line for line in lines if line not in ("", "> ") and line[0] not in "🔍⏳") + "\n"


class Chat:
    """A messenger's; `messages` gives (id, text, buttons) of what Ava's messages are now."""

    def __init__(self, url):
        self.url, self.seen, self.page = url, {}, ""

    def post(self, what, **body):
        with urllib.request.urlopen(f"{self.url}/test/{what}", json.dumps(body).encode(), 60) as f:
            return json.load(f)

    def new(self):
        return [m for m in self.messages() if m[0] not in self.seen]

    def look(self, last):
        until(lambda: any(last in text for _, text, _ in self.new()))
        for one, text, buttons in self.new():
            if text[0] == "🚀":  # the rest of it, and its button, change with the clock
                text, buttons = text.split("\n")[0], []
            self.seen[one] = text
            self.page += text + "".join(f"\n[{b}]" for b in buttons) + "\n----\n"

    def play(self, look=lambda: None):
        for one, text, _ in self.messages():
            self.seen[one] = text
        for said, last in STEPS:
            self.page += f"> {said}\n"
            self.say(said)
            self.look(last)
            look()
        over = lambda: not any(re.search(r"\[Yes/No\]$|Change$|\.\.\.$|\[Cancel\]$", text) for _, text, _ in self.messages() if text[0] in "P🚀")
        until(over)
        for one, text, buttons in self.messages():
            if text != self.seen[one]:
                self.page += "at last:\n" + text + "".join(f"\n[{b}]" for b in buttons) + "\n----\n"
        return self.page


class Telegram(Chat):
    def say(self, text):
        self.post("say", **{"from": 77, "text": text})

    def messages(self):
        return [(m["message_id"], m["text"], [b["text"] for row in m.get("markup", {}).get("inline_keyboard", []) for b in row])
                for m in self.post("messages")["messages"]]


class Matrix(Chat):
    def say(self, text):
        self.post("say", **{"from": "ben", "text": text, "reply": ""})

    def messages(self):
        return [(m["event"], m["text"], []) for m in self.post("messages")["messages"]]


def in_editor():
    acp.CWD = SRC
    page = []

    def chosen(request):
        asks = request["params"]
        page.append("".join(c["content"]["text"] + "\n" for c in asks["toolCall"].get("content", [])) + "\n".join(f"[{o['name']}]" for o in asks["options"]) + "\n")
        wanted = "No" if now[0] == "Count the cups" else "Yes"
        return next(o["optionId"] for o in asks["options"] if o["name"] in ("copper", wanted))

    # An answer to a permission is none of what is said to Ava, so she has nothing to say to it.
    e, now = acp.Editor("--wait", "--model", f"offline:{T}/editor.jsonl", answer=chosen), [""]
    take = e.updates
    session = e.new()

    class Updates(list):
        def append(self, params):
            list.append(self, params)
            u = params["update"]
            if u["sessionUpdate"] == "agent_message_chunk":
                page.append(u["content"]["text"])
            elif u["sessionUpdate"] == "tool_call" or u.get("status") in ("completed", "failed"):
                page.append("\n{%s: %s}\n" % (u.get("title", u["toolCallId"]), u.get("status")))

    e.updates = Updates(take)
    for said, _ in STEPS:
        if said in ("yes", "no", "copper"):
            continue
        now[0] = said
        page.append(f"\n> {said}\n")
        e.prompt(session, said)
    e.end()
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", "".join(page))).strip("\n") + "\n"


def by_mcp():
    can, page, b = mcp.FORMS | mcp.TASKS, [], mcp.Bridge(SRC)

    def form(params):
        fields = params["requestedSchema"]["properties"]
        page.append(params["message"] + "\n" + "\n".join(f"[{f.get('title', name)}{': ' + ', '.join(f['enum']) if 'enum' in f else ''}]" for name, f in fields.items()))

    def tell(answer):  # a program reads that; what is another each time is left out
        told = json.loads(answer["content"][0]["text"])
        page.append("\n".join(f"{k}: {json.dumps(told[k])}" for k in ("status", "state", "stop_reason", "summary", "message", "caveats") if k in told) + "\n")

    def task(answer):
        return b.ask("tasks/get", {"taskId": answer["taskId"]}, can)["result"]

    for given, yes in (({"task": "Count the kettles in the kitchen.", "role": "counter"}, True), ({"task": "Boil a kettle.", "role": "boiler", "max_iterations": 1}, True),
                       ({"task": "Count the cups.", "role": "counter"}, False)):
        a = b.tool("ava_propose", can, **given)
        form(mcp.form_of(a)[1])
        a = b.tool("ava_propose", can, more=mcp.fill(a, start=True) if yes else mcp.fill(a, start=False), **given)["result"]
        if not yes:
            tell(a)
            continue
        t = until(lambda: (lambda r: r if r["status"] != "working" else None)(task(a)))
        if t["status"] == "input_required":
            (key, request), = t["inputRequests"].items()
            form(request["params"])
            b.ask("tasks/update", {"taskId": a["taskId"], "inputResponses": {key: {"action": "accept", "content": {"answer": "copper"}}}}, can)
            t = until(lambda: (lambda r: r if r["status"] not in ("working", "input_required") else None)(task(a)))
        tell(t["result"])
    b.end()
    return "\n----\n".join(page) + "\n"


# ---- what is the same in all of them

def elsewhere(door, s, said):
    """What that door has no place for. A program is not told what Ava says and asks, nor ends in words, and its quotes have rights of their own and fields to
    answer them; in an editor Ava has nothing to say to an answer."""
    if door == "mcp":
        return s in said or s.startswith(("• Rights: ", "Proceed?", "Shall I remember"))
    with open(GOLDEN + "editor.jsonl", encoding="utf-8") as f:
        return door == "acp" and s in said and s.endswith(".") and s not in f.read()


def sentences(session, found, said):
    """Of the Asks that are open, and of the Items."""
    for ask in answer("GET", f"/asks?session={session}")[1]["asks"]:
        found.update(dict.fromkeys(line for line in ask["text"].split("\n") if line))
    for item in answer("GET", f"/items?session={session}&limit=1000")[1]["items"]:
        if item["kind"] == "said" and item["detail"]["by"] == "ava":
            found[item["text"]] = said[item["text"]] = None
        if item["kind"] in ("result", "failed"):
            found[item["detail"]["end"] + " ("] = said[item["detail"]["end"] + " ("] = None


def main():
    telegram, matrix = Telegram(os.environ["BOT"]), Matrix(os.environ["HS"])
    session = json.load(open(os.environ["AVA_DATA_ROOT"] + "/telegram.json", encoding="utf-8"))["chats"][0]["session"]
    found, said = {}, {}
    pages = {"telegram": telegram.play(lambda: sentences(session, found, said)), "matrix": matrix.play(), "terminal": at_terminal(), "acp": in_editor(), "mcp": by_mcp()}
    for door, page in pages.items():
        page, path = plain(page), f"{GOLDEN}{door}.txt"
        if len(sys.argv) > 1:
            with open(path, "w", encoding="utf-8") as f:
                f.write(page)
        with open(path, encoding="utf-8") as f:
            same = f.read()
        with open(f"{T}/{door}.txt", "w", encoding="utf-8") as f:
            f.write(page)
        diff = "" if same == page else subprocess.run(["diff", "-u", path, f"{T}/{door}.txt"], capture_output=True, text=True).stdout
        check(f"{door}: what a person sees", not diff, diff)
        missing = [s for s in found if words(s) not in words(page) and not elsewhere(door, s, said)]
        check(f"{door}: the words of all Items and Asks", not missing, missing)


main()
