#!/usr/bin/python3
"""script/site on small trees: whole ones are made without a word, and of a broken link its file and line are named.

Prints `ok N - name` or `not ok N - name` a sample; exit code 1 when one failed."""

import os
import subprocess
import sys
import tempfile

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "script", "site")

TREE = {
    "README.md": "# tea\n\nTea is hot. It cools.\n\n![a pot](doc/images/pot.svg) [how](doc/BREW.md#a-pot-or-two), [home](https://tea.example)\n",
    "SECURITY.md": "# Security policy\n\nTell us. See `doc/SECURITY.md`.\n",
    "doc/SECURITY.md": "# Security\n\nNo `SECURITY.md` is itself; the [policy](../SECURITY.md) is.\n",
    "doc/BREW.md": "# Brewing\n\nSee `SECURITY.md`, and README.md. `NONE.md` is nothing.\n\n## A pot, or two\n\n- one:\n  ```\n  [no](link.md)\n  ```\n\n## A pot, or two\n\n"
                   "| a | b |\n|---|---|\n| `x` | <script>alert(1)</script> |\n",
    "doc/CUPS.md": "# Cups\n\nRinsed as `BREW.md`, \"A pot, or two\", says.\n",
    "doc/images/pot.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "doc/api.yaml": """
openapi: 3.1.0
info: {title: tea, version: '1', description: It is HTTP.}
paths:
  /api/v1/pots/{id}:
    get:
      summary: One pot
      parameters: [{name: hot, in: query, schema: {type: integer, minimum: 1, default: 3}, description: 'a | b'}]
      responses: {'200': {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Pot'}}}}}
components:
  schemas:
    Pot: {type: object, required: [name], properties: {name: {type: string}, cups: {type: array, items: {type: object, properties: {full: {type: boolean}}}}}}
""",
}

# A name, what is changed, what must be said (none: nothing), what must be in a file.
SAMPLES = [
    ("a whole tree", {}, None, None),
    ("a word that names a page is a link to the part", {}, None, ("CUPS.html", '<a href="BREW.html#a-pot-or-two"><code>BREW.md</code>, &quot;A pot, or two&quot;</a>')),
    ("a second heading of one name has an anchor of its own", {}, None, ("BREW.html", 'id="a-pot-or-two-1"')),
    ("HTML in Markdown is none of the site", {}, None, ("BREW.html", "<td>alert(1)</td>")),
    ("of a path its shape is a link", {}, None, ("API.html", '<a href="#pot">Pot</a>')),
    ("a member inside members", {}, None, ("API.html", "<code>cups[].full</code>?")),
    ("a column sign in a text", {}, None, ("API.html", "a | b")),
    ("llms.txt names each page with its first sentence", {}, None, ("llms.txt", "- [tea](README.md): Tea is hot.\n")),
    ("the search finds a part", {}, None, ("index.js", '["BREW.html#a-pot-or-two","Brewing","A pot, or two"')),
    ("a picture is taken along", {}, None, ("images/pot.svg", "<svg")),
    ("a link to no file", {"doc/CUPS.md": "# Cups\n\n\n[x](SAUCER.md)\n"}, "doc/CUPS.md:4: SAUCER.md: there is no such file", None),
    ("a link to no heading", {"doc/CUPS.md": "# Cups\n\n[x](BREW.md#a-kettle)\n"}, "doc/CUPS.md:3: BREW.md#a-kettle: doc/BREW.md has no such heading", None),
    ("a link in code is none", {"doc/CUPS.md": "# Cups\n\n`[x](SAUCER.md)`\n"}, None, None),
    ("a picture from elsewhere", {"doc/CUPS.md": "# Cups\n\n![x](https://tea.example/x.png)\n"}, "https://tea.example/x.png: it would be fetched from elsewhere", None),
]


def put(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def problem(changes, said, has):
    """What is not as it should be; empty: nothing."""
    with tempfile.TemporaryDirectory(prefix="ava-site-") as folder:
        tree, out = os.path.join(folder, "tree"), os.path.join(folder, "out")
        put(tree, {**TREE, **changes})
        done = subprocess.run([SITE, out, tree], cwd=tree, capture_output=True, text=True, check=False)
        if (done.returncode != 0) != bool(said) or said and said not in done.stdout:
            return f"code {done.returncode}: {done.stdout}{done.stderr}"
        if has:
            with open(os.path.join(out, has[0]), encoding="utf-8") as f:
                text = f.read()
            return "" if has[1] in text else text
    return ""


def main():
    failed = 0
    for n, (name, changes, said, has) in enumerate(SAMPLES, 1):
        wrong = problem(changes, said, has)
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {n} - {name}")
        if wrong:
            print("# " + wrong[-3000:].replace("\n", "\n# "))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
