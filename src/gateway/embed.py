#!/usr/bin/python3
"""The page as a C table (gateway/web.h): embed.py DIST OUT.c. DIST is what web/ was built into; where it
is not there, a page that says how to make it."""

import gzip
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
         ".png": "image/png", ".woff2": "font/woff2", ".json": "application/json"}

NONE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>ava</title>
<h1>ava was built without its page</h1><p>It is made with node and npm: run ./dev build where they can be had, then ava
restart. Everything else works as it is.</p></html>
"""


def files(dist):
    if not os.path.isfile(os.path.join(dist, "index.html")):
        return [("/", ".html", NONE)]
    found = []
    for folder, _, names in sorted(os.walk(dist)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            url = "/" + os.path.relpath(path, dist)
            with open(path, "rb") as f:
                found.append(("/" if url == "/index.html" else url, os.path.splitext(name)[1], f.read()))
    return sorted(found, key=lambda row: row[0] != "/")  # the start first


def table(rows):
    c = ["/* Made by embed.py. */", '#include "gateway/web.h"', "", "#include <stddef.h>", ""]
    for i, (_, _, data) in enumerate(rows):
        packed = gzip.compress(data, 9, mtime=0)
        c.append(f"static const unsigned char part_{i}[] = {{")
        c += ["\t" + ",".join(str(b) for b in packed[at:at + 20]) + "," for at in range(0, len(packed), 20)]
        c += ["};", ""]
    c.append(f"const bool web_assets_made = {str(len(rows) > 1).lower()};")
    c.append("const struct web_asset web_assets[] = {")
    c += [f'\t{{"{url}", "{TYPES[suffix]}", part_{i}, sizeof(part_{i})}},' for i, (url, suffix, _) in enumerate(rows)]
    c += ["\t{NULL, NULL, NULL, 0},", "};", ""]
    return "\n".join(c)


def main():
    dist, out = sys.argv[1:]
    text = table(files(dist))
    if os.path.exists(out):
        with open(out) as f:
            if f.read() == text:
                return  # what depends on it stays as it is
    with open(out, "w") as f:
        f.write(text)


main()
