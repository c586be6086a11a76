"""The interface of doc/api.yaml as Markdown, for the site: paths by what they are about, with what they take
and answer, and the shapes behind them. Only what that file has of OpenAPI is read."""

import re

import yaml

AREAS = {"health": "The daemon", "shutdown": "The daemon", "stats": "The daemon", "verify": "The daemon", "prune": "The daemon",
         "audit": "The daemon", "doors": "The daemon", "dashboard": "The page and other doors", "login": "The page and other doors",
         "mcp-token": "The page and other doors", "logs": "Events", "items": "Events", "memories": "Memory", "asks": "Asks and proposals",
         "proposals": "Asks and proposals", "claude": "Claude Code", "models": "Models and roles", "roles": "Models and roles",
         "skills": "Models and roles"}
DEEP = 5  # names with so many points are as far as a table goes


def cell(text):
    return " ".join(str(text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def named(ref):
    name = ref.rsplit("/", 1)[1]
    return f"[{name}](#{name.lower()})"


def kind(schema):
    """A type in a few words."""
    if not schema:
        return "anything"
    if "$ref" in schema:
        return named(schema["$ref"])
    for key, word in (("anyOf", " or "), ("oneOf", " or "), ("allOf", " with ")):
        if key in schema:
            return word.join(kind(s) for s in schema[key])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    types = schema.get("type", "object" if "properties" in schema else "anything")
    text = " or ".join(types) if isinstance(types, list) else types
    if "items" in schema:
        text = f"{text} of {kind(schema['items'])}"
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and more:
        text += f", each {kind(more)}"
    limits = [f"{word} {schema[key]}" for key, word in (
        ("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("maxLength", "at most"), ("maxItems", "at most")) if key in schema]
    if "default" in schema:
        limits.append(f"else `{schema['default']}`")
    return text + (f" ({', '.join(limits)})" if limits else "")


def members(schema, before="", deep=1):
    """Rows of a table: each member with those inside it."""
    for part in schema.get("allOf", []):
        yield from members(part, before, deep)
    required = schema.get("required", [])
    for name, inner in schema.get("properties", {}).items():
        inner = inner if isinstance(inner, dict) else {}
        mark = "" if name in required else "?"
        yield f"| `{before}{name}`{mark} | {cell(kind(inner))} | {cell(inner.get('description'))} |"
        if deep < DEEP:
            yield from members(inner, f"{before}{name}.", deep + 1)
            if isinstance(inner.get("items"), dict):
                yield from members(inner["items"], f"{before}{name}[].", deep + 1)
    if not schema.get("properties") and isinstance(schema.get("items"), dict) and deep < DEEP:
        yield from members(schema["items"], before + "[].", deep + 1)


def table(heads, rows):
    return ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *rows, ""] if rows else []


def content(holder):
    """The schema of a body or an answer, and what it travels as."""
    for media, inner in (holder.get("content") or {}).items():
        return inner.get("schema") or {}, media
    return None, ""


def operation(path, verb, what, shared):
    yield f"### {verb.upper()} {path}"
    yield ""
    yield cell(what.get("summary")) + "."
    if what.get("description"):
        yield ""
        yield " ".join(what["description"].split())
    yield from table(("parameter", "in", "type", "what"), [
        f"| `{p['name']}`{'' if p.get('required') or p['in'] == 'path' else '?'} | {p['in']} | {cell(kind(p.get('schema')))} | {cell(p.get('description'))} |"
        for p in shared + what.get("parameters", [])])
    body, media = content(what.get("requestBody") or {})
    if body is not None:
        yield ""
        yield f"Body{'' if media == 'application/json' else ' (' + media + ')'}: {kind(body)}"
        yield from table(("member", "type", "what"), list(members(body)))
    rows = []
    for code, answer in what.get("responses", {}).items():
        shape, _ = content(answer)
        rows.append(f"| {code} | {cell(kind(shape)) if shape is not None else ''} | {cell(answer.get('description'))} |")
    yield from table(("answer", "type", "what"), rows)


def area(path):
    if path.startswith("/api/sessions"):
        return "Claude Code"
    word = re.sub(r"^/api/v1/", "", path).split("/")[0]
    return AREAS.get(word, word.capitalize())


def markdown(text):
    api = yaml.safe_load(text)
    out = ["# The HTTP API", "", "The interface of avad, rendered from `doc/api.yaml`. A `?` marks what may be absent.", "",
           " ".join(api["info"].get("description", "").split()), ""]
    areas = {}
    for path, verbs in api["paths"].items():
        areas.setdefault(area(path), []).append((path, verbs))
    for name, paths in areas.items():
        out += [f"## {name}", ""]
        for path, verbs in paths:
            for verb, what in verbs.items():
                if verb != "parameters":
                    out += operation(path, verb, what, verbs.get("parameters", []))
    out += ["## Shapes", ""]
    for name, schema in api.get("components", {}).get("schemas", {}).items():
        out += [f"### {name}", ""]
        if schema.get("description"):
            out += [" ".join(schema["description"].split()), ""]
        rows = list(members(schema))
        out += table(("member", "type", "what"), rows) if rows else [kind(schema), ""]
    return "\n".join(out) + "\n"
