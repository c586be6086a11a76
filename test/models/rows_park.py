"""Quotas that come back later than a run waits with its slot: the forms in which services tell the time, and who begins
again first of many that wait for the same. Two and a half minutes are ten seconds here (play.py). What a person says, kills and
restarts: test/cli/test_park.sh."""

import json
import threading
import time

from play import Row
from service import asubmit, resp, submit


def told(name, answer, **more):
    """Refused with a time, then asked once more. It was parked: its own clock stood still."""
    def late(result):
        return None if result.get("duration_seconds", 999) < 60 else f"its clock went on: {result.get('duration_seconds')}"
    again = asubmit if more.get("on") == "anthropic" else submit
    return Row(name, lambda n, r: answer if n == 1 else again(n, r), requests=2, result=late, **more)


def refused(status=429, body=None, **headers):
    return resp(status, body or {"error": {"message": "not now", "type": "rate_limit_error"}}, **headers)


def err(message, **more):
    return {"error": {"message": message, **more}}


def until(seconds, check):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def runs(world):
    return json.loads(world.ava("ps", "--json").stdout or "[]")


def start(world, row, *more):
    return world.ava("run", f"Look at the folder. [row {row.name}]", "--role", row.role, "--model", row.model(), "--yes",
                     "--background", *more)


class Many:
    """Twenty runs of one service. `phase` 0: each is refused; 1: once more; 2: the first answer comes late."""

    def __init__(self):
        self.phase, self.asked, self.first, self.beside = 0, [0, 0, 0], threading.Event(), 0

    def script(self, n, request):
        phase = self.phase
        self.asked[phase] += 1
        if phase < 2:
            return refused(retry_after="150")
        if self.asked[2] == 1:
            time.sleep(1.5)
            self.beside = self.asked[2] - 1
            self.first.set()
        return submit(n, request)

    def play(self, world, row):
        def parked(n=20):
            return sum(r["status"] == "parked" for r in runs(world)) == n
        for _ in range(20):
            start(world, row)
        wrong = []
        if not until(20, parked):
            return [f"not parked: {[r['status'] for r in runs(world)]}"]
        if self.asked[0] > 8:
            wrong.append(f"{self.asked[0]} asked, where eight have a slot")
        self.phase = 1
        if not until(40, lambda: self.asked[1] > 0) or not until(10, parked):
            return wrong + ["they do not wait again"]
        if self.asked[1] != 1:
            wrong.append(f"asked {self.asked[1]} times whether it is back")
        self.phase = 2
        if not until(60, self.first.is_set) or not until(60, lambda: runs(world) == []):
            return wrong + ["they do not go on"]
        if self.beside:
            wrong.append(f"{self.beside} more asked before the first was answered")
        good = sum(r["status"] == "success" for r in json.loads(world.ava("ps", "-a", "--json").stdout))
        return wrong + ([] if good == 20 else [f"{good} of 20 ended well"])


def unified(world, row):
    """The limits of a subscription: which one, and until when as a time."""
    start(world, row)
    if not until(20, lambda: [r["status"] for r in runs(world)] == ["parked"]):
        return [f"not parked: {runs(world)}"]
    run = runs(world)[0]
    said = json.loads(world.ava("status", run["subagent_id"], "--json").stdout)["current_activity"]
    world.ava("cancel", run["subagent_id"])
    return [] if "weekly limit of anthropic" in said else [f"shown as {said!r}"]


MANY = Many()
ROWS = [
    told("park_seconds", refused(retry_after="150")),
    told("park_overloaded", refused(529, err("Overloaded", type="overloaded_error"), retry_after="150"), on="anthropic"),
    told("park_should_not_retry", refused(retry_after="150", x_should_retry="false")),
    told("park_openai_header", refused(x_ratelimit_reset_requests="2m30s", x_ratelimit_remaining_requests="0",
                                       x_ratelimit_reset_tokens="6h", x_ratelimit_remaining_tokens="4000"), on="openai"),
    told("park_codex", refused(429, err("The usage limit has been reached", type="usage_limit_reached", plan_type="plus",
                                        resets_in_seconds=150)), on="openai"),
    told("park_google", refused(429, [err("You exceeded your current quota.", code=429, status="RESOURCE_EXHAUSTED", details=[
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "150s"}])])),
    told("park_sentence", refused(429, err("You have hit your weekly limit. Try again in 2 minutes 30 seconds."))),
    told("park_402", refused(402, err("usage limit reached: your quota resets in 150 s"))),
    told("park_400", refused(400, err("You have reached your specified API usage limits. They reset in 150 seconds.",
                                      type="invalid_request_error")), on="anthropic"),
    Row("park_unified", lambda n, r: refused(
        anthropic_ratelimit_unified_status="rejected", anthropic_ratelimit_unified_reset=str(int(time.time()) + 18000),
        anthropic_ratelimit_unified_representative_claim="seven_day"), on="anthropic", play=unified),
    Row("park_many", MANY.script, play=MANY.play, fast=True, env={"AVA_RUNS_MAX": "8"}),
]
