#!/usr/bin/env python3
"""A collector of OpenTelemetry that takes what a real one takes over OTLP/HTTP in JSON
and refuses the rest with 400 and a sentence.

    otel_collector.py FOLDER [PORT]

Listens on 127.0.0.1; "port N" is its first line. FOLDER/plan says how it answers, a
line a request, the last one for ever: `ok`, `partial N`, `slow SECONDS`, `drop`, `nologs` (404
for logs), or a status, with a Retry-After behind it (`429 1`). Each request is a line of
FOLDER/seen: the plan's line, the status, the number of spans, "key" when its header was
there, the sentence, or the path of another signal. FOLDER/spans has each span id that was taken,
and its name; FOLDER/logs the event, trace and span of each record; FOLDER/metrics the name, the
attributes and the value of each point, a push behind the other, each begun by "push ID"."""

import http.server
import json
import os
import re
import sys
import threading
import time

FOLDER = sys.argv[1]
HEX = re.compile(r"^[0-9a-f]+$")
NANO = re.compile(r"^[1-9][0-9]{17,18}$")  # strings: 64 bits
VALUES = {"stringValue": str, "boolValue": bool, "intValue": str, "doubleValue": (int, float),
          "arrayValue": dict}
LOCK = threading.Lock()
count = 0


class Wrong(Exception):
    pass


def need(ok, what):
    if not ok:
        raise Wrong(what)


def only(o, where, required, optional=()):
    need(isinstance(o, dict), where + " is no object")
    for key in required:
        need(key in o, "%s has no %s" % (where, key))
    for key in o:
        need(key in required or key in optional, "%s: unknown field %s" % (where, key))


def check_value(v, where):
    need(isinstance(v, dict) and len(v) == 1, where + " is no AnyValue")
    kind, value = next(iter(v.items()))
    need(kind in VALUES and isinstance(value, VALUES[kind]), "%s: %s" % (where, kind))
    if kind == "intValue":
        need(re.match(r"^-?[0-9]+$", value), where + ": intValue")
    if kind == "arrayValue":
        for one in value["values"]:
            check_value(one, where)


def check_attributes(o, where):
    seen = set()
    for a in o.get("attributes", []):
        only(a, where + " attribute", ["key", "value"])
        need(a["key"] and a["key"] not in seen, where + ": key " + a["key"])
        seen.add(a["key"])
        check_value(a["value"], where + " " + a["key"])


def check_id(value, digits, where):
    need(isinstance(value, str) and len(value) == digits and HEX.match(value) and
         value.strip("0"), "%s: %s" % (where, value))


def check_span(s):
    only(s, "span", ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"],
         ["parentSpanId", "attributes", "events", "links", "status"])
    check_id(s["traceId"], 32, "traceId")
    check_id(s["spanId"], 16, "spanId")
    if "parentSpanId" in s:
        check_id(s["parentSpanId"], 16, "parentSpanId")
    need(isinstance(s["name"], str) and s["name"], "span without a name")
    need(s["kind"] in (1, 2, 3, 4, 5), "kind")
    for key in ("startTimeUnixNano", "endTimeUnixNano"):
        need(isinstance(s[key], str) and NANO.match(s[key]), key)
    need(int(s["endTimeUnixNano"]) >= int(s["startTimeUnixNano"]), "ends before it starts")
    check_attributes(s, "span")
    for e in s.get("events", []):
        only(e, "event", ["timeUnixNano", "name"], ["attributes"])
        need(isinstance(e["timeUnixNano"], str) and NANO.match(e["timeUnixNano"]), "event time")
        check_attributes(e, "event")
    for l in s.get("links", []):
        only(l, "link", ["traceId", "spanId"], ["attributes"])
    if "status" in s:
        only(s["status"], "status", ["code"], ["message"])
        need(s["status"]["code"] in (0, 1, 2), "status code")
    return s["spanId"], s["name"]


def check_nano(o, *keys):
    for key in keys:
        need(isinstance(o[key], str) and NANO.match(o[key]), key)


def check_scopes(body, signal, items):
    """Each item of a request, whose resources and scopes are checked."""
    only(body, "request", ["resource" + signal])
    for r in body["resource" + signal]:
        only(r, "resource", ["resource", "scope" + signal], ["schemaUrl"])
        check_attributes(r["resource"], "resource")
        yield from ((r, item) for scope in r["scope" + signal]
                    for item in only(scope, "scope", ["scope", items], ["schemaUrl"]) or scope[items])


def check_logs(body):
    records = []
    for _, r in check_scopes(body, "Logs", "logRecords"):
        only(r, "record", ["timeUnixNano", "observedTimeUnixNano", "severityNumber", "eventName", "traceId", "spanId"],
             ["attributes", "body", "severityText"])
        check_nano(r, "timeUnixNano", "observedTimeUnixNano")
        check_id(r["traceId"], 32, "traceId")
        check_id(r["spanId"], 16, "spanId")
        need(r["severityNumber"] in range(1, 25), "severityNumber")
        check_attributes(r, "record")
        records.append("%s %s %s" % (r["eventName"], r["traceId"], r["spanId"]))
    need(records, "no records")
    return records


def check_metrics(body):
    lines, ids = [], set()
    for resource, m in check_scopes(body, "Metrics", "metrics"):
        ids.update(a["value"]["stringValue"] for a in resource["resource"]["attributes"] if a["key"] == "service.instance.id")
        kind = "histogram" if "histogram" in m else "sum"
        only(m, "metric", ["name", "unit", kind])
        only(m[kind], m["name"], ["aggregationTemporality", "dataPoints"], ["isMonotonic"])
        need(m[kind]["aggregationTemporality"] == 2 and m[kind].get("isMonotonic", kind == "histogram"), "temporality")
        for p in m[kind]["dataPoints"]:
            check_nano(p, "startTimeUnixNano", "timeUnixNano")
            check_attributes(p, m["name"])
            value = p.get("asInt", p.get("asDouble"))
            if kind == "histogram":
                need(len(p["bucketCounts"]) == len(p["explicitBounds"]) + 1, "buckets")
                need(sum(map(int, p["bucketCounts"])) == int(p["count"]), "count")
                value = p["count"]
            need(kind == "histogram" or isinstance(value, str) or "asDouble" in p, "64 bits are strings")
            names = ",".join("%s=%s" % (a["key"], a["value"]["stringValue"]) for a in p["attributes"])
            lines.append("%s %s %s" % (m["name"], names, value))
    need(lines and len(ids) == 1, "no points, or no service.instance.id")
    return ["push " + ids.pop()] + lines


def check_request(body):
    only(body, "request", ["resourceSpans"])
    if body["resourceSpans"] == []:
        return []  # of no use, and well formed
    spans = []
    for r in body["resourceSpans"]:
        only(r, "resourceSpans", ["resource", "scopeSpans"], ["schemaUrl"])
        check_attributes(r["resource"], "resource")
        need(any(a["key"] == "service.name" for a in r["resource"]["attributes"]), "service.name")
        for scope in r["scopeSpans"]:
            only(scope, "scopeSpans", ["scope", "spans"], ["schemaUrl"])
            spans += [check_span(s) for s in scope["spans"]]
    need(spans, "no spans")
    return spans


PATHS = {"/v1/traces": (check_request, "spans"), "/v1/logs": (check_logs, "logs"), "/v1/metrics": (check_metrics, "metrics")}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body, retry=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry is not None:
            self.send_header("Retry-After", retry)
        self.end_headers()
        self.wfile.write(data)

    def judge(self, data):
        need(self.path in PATHS, "path " + self.path)
        need(self.headers.get("Content-Type") == "application/json",
             "Content-Type %s" % self.headers.get("Content-Type"))
        need(self.headers.get("Content-Encoding", "identity") == "identity", "encoding")
        need(len(data) <= 20 << 20, "too large")
        return PATHS[self.path][0](json.loads(data))

    def do_POST(self):
        global count
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with LOCK:
            with open(os.path.join(FOLDER, "plan")) as f:
                plan = f.read().splitlines()
            words = plan[min(count, len(plan) - 1)].split()
            count += 1
        key = "key" if self.headers.get("x-api-key") == "sesame open" else "-"
        try:
            spans, status, why = self.judge(data), 200, ""
        except (Wrong, ValueError, KeyError, TypeError) as e:
            spans, status, why = [], 400, repr(e)
        if status == 200 and words[0].isdigit():
            status = int(words[0])
        if words[0] == "nologs" and self.path == "/v1/logs":
            status = 404
        if words[0] == "slow":
            time.sleep(float(words[1]))
        path, name = self.path, PATHS.get(self.path, (None, "spans"))[1]
        with open(os.path.join(FOLDER, name), "a") as f:
            for one in spans if status == 200 and words[0] in ("ok", "partial", "nologs") else []:
                f.write((one if isinstance(one, str) else "%s %s" % one) + "\n")
        with open(os.path.join(FOLDER, "seen"), "a") as f:
            f.write("%s %d %d %s %s\n" % (" ".join(words), status, len(spans), key, why or path.replace("/v1/traces", "")))
        if words[0] == "drop":
            self.close_connection = True
            return
        body = {}
        if status != 200:
            body = {"code": 3, "message": why or "as planned, said to sesame open"}
        elif words[0] == "partial":
            body = {"partialSuccess": {"rejectedSpans": words[1], "errorMessage": "too old"}}
        try:
            self.answer(status, body, words[1] if words[0].isdigit() and len(words) > 1 else None)
        except OSError:
            pass  # slow: nobody waits any more


port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
http.server.ThreadingHTTPServer.allow_reuse_address = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Collector)
print("port %d" % server.server_address[1], flush=True)
server.serve_forever()
