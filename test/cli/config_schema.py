"""config_schema.py SCHEMA: the schema against the reader of config.yaml, both ways."""

import copy
import json
import os
import re
import subprocess
import sys

import jsonschema
import yaml

SRC = os.environ["SRCDIR"]
with open(sys.argv[1], encoding="utf-8") as f:
    SCHEMA = json.load(f)
checker = jsonschema.Draft7Validator(SCHEMA)


def ok(good, name, more=""):
    print(f"{'ok' if good else 'not ok'} {name}")
    if not good and more:
        print("# " + str(more).replace("\n", "\n# "))


def refuses(text):
    """What avad says of such a file; "": it takes it."""
    path = os.path.join(os.environ["XDG_CONFIG_HOME"], "ava", "config.yaml")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    said = json.loads(subprocess.run([os.environ["AVAD"], "--doctor"], check=True, capture_output=True).stdout)
    os.unlink(path)
    return "".join(c["detail"] for c in said["checks"] if c["name"] == "config" and not c["ok"]), said["settings"]


def keys(schema):
    return {f"{section}.{name}": form for section, of in schema["properties"].items()
            for name, form in of.get("properties", {}).items()}


checker.check_schema(SCHEMA)
with open(f"{SRC}/packaging/config.yaml", encoding="utf-8") as f:
    example = f.read()
ok(checker.is_valid(yaml.safe_load(example)), "the example fits", list(checker.iter_errors(yaml.safe_load(example))))
ok(refuses(example)[0] == "", "and ava takes it", refuses(example)[0])
ok(example.startswith("# yaml-language-server: $schema="), "its first line names the schema")

# The keys, by what ava itself has.
wrong, settings = refuses("")
source = open(f"{SRC}/src/ava/config.c", encoding="utf-8").read()
doors = re.findall(r'X\(\w+, "[^"]*", "[^"]*", "([a-z.]+)"', open(f"{SRC}/src/base/doors.h", encoding="utf-8").read())
own = re.findall(r'"([a-z_.]+\.[a-z_]+)"', re.search(r"own_keys\[\] = \{(.*?)\};", source, re.S)[1])
models = re.search(r'"models\.", "([a-z_ ]+)"', source)[1].split()
known = (set(settings) - {"confirm"}) | set(own) | set(doors) | {f"models.{name}" for name in models}
has = {key for key in keys(SCHEMA) if not key.startswith("providers.")}
ok(len(known) > 50 and has == known, "it has the keys that ava reads", sorted(has ^ known))
row = set(re.search(r'MODEL_WORDS\s+\\\s+"([a-z_ ]+)"', source)[1].split())
of_model = SCHEMA["properties"]["models"]["properties"]["list"]["items"]
ok(set(of_model["properties"]) == row, "and those of a model", set(of_model["properties"]) ^ row)
bad = [key for key, form in keys(SCHEMA).items() if form.get("type") == "integer" and settings[key] != form["default"]]
bad = [key for key in bad if key not in ("disk.ballast_mb", "disk.free_min_mb")]  # set by the tests
ok(not bad, "with their defaults", bad)
ok(not [key for key, form in keys(SCHEMA).items() if not key.startswith("providers.") and not form.get("description")],
   "each says what it is")

# What one takes the other takes: all numbers at their ends and beyond, then words.
for end, step in (("minimum", -1), ("maximum", 1)):
    file = {}
    for key, form in keys(SCHEMA).items():
        if form.get("type") == "integer":
            file.setdefault(key.split(".")[0], {})[key.split(".")[1]] = form[end]
    why = refuses(yaml.safe_dump(file))[0]
    ok(checker.is_valid(file) and why == "", f"every number at its {end}", why)
    file["runs"]["max"] += step
    ok(not checker.is_valid(file) and refuses(yaml.safe_dump(file))[0] != "", f"none beyond its {end}")

TRIES = (
    "runs: {maxx: 3}", "runs: 3", "nonsense: 1", "runs: {max: eight}", "runs: {max: 1.5}",
    "confirm: always", "confirm: over_cents:20", "confirm: sometimes",
    "models: {on_quota: ask}", "models: {on_quota: wait}", "models: {fallback: [claude-haiku]}", "models: {fallback: claude-haiku}",
    "models: {list: [{id: local/x, alias: mine}]}", "models: {list: [{alias: mine}]}", "models: {list: [{id: local/x, wide: 3}]}",
    "models: {list: [{id: local/x, prices: unknown}]}", "models: {list: [{id: local/x, prices: {input: 1}}]}",
    "models: {list: [{id: local/x, thinking: much}]}", "models: {list: [{id: local/x, context: 12}]}",
    "providers: {local: {base_url: 'http://127.0.0.1:1/v1', model: x}}", "providers: {anthropic: {model: x}}", "providers: {other: {}}",
    "notify: {exec: /bin/true}", "notify: {exec: [/bin/true, x]}", "notify: {exec: []}",
    "otel: {endpoint: 'http://127.0.0.1:4318'}", "otel: {endpoint: 'ftp://x'}",
    "web: {allow_private: ['127.0.0.1:80']}", "cluster: {folders: {tmp: /tmp}}", "cluster: {folders: [/tmp]}",
)
for text in TRIES:
    fits, why = checker.is_valid(yaml.safe_load(text)), refuses(text)[0]
    ok(fits == (why == ""), f"{text}: {'taken' if why == '' else 'refused'} by both", f"schema: {fits}, ava: {why}")
