#!/usr/bin/python3
"""The page as a C table (gateway/web.h): embed.py DIST OUT.c. DIST is what web/ was built into; where it
is not there, a page that says how to make it."""

import gzip
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
         ".png": "image/png", ".woff2": "font/woff2", ".json": "application/json"}

NONE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>ava</title>
<h1>ava was built without its page</h1><p>It is made with node and npm: run ./dev build where they can be had, then start
the daemon again. Everything else works as it is.</p></html>
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


def main():
    dist, out = sys.argv[1:]
    rows = files(dist)
    with open(out, "w") as f:
        f.write("/* Made by embed.py. */\n#include \"gateway/web.h\"\n\n#include <stddef.h>\n\n")
        for i, (_, _, data) in enumerate(rows):
            packed = gzip.compress(data, 9, mtime=0)
            f.write(f"static const unsigned char part_{i}[] = {{\n")
            for at in range(0, len(packed), 20):
                f.write("\t" + ",".join(str(b) for b in packed[at:at + 20]) + ",\n")
            f.write("};\n\n")
        f.write("const struct web_asset web_assets[] = {\n")
        for i, (url, suffix, _) in enumerate(rows):
            f.write(f'\t{{"{url}", "{TYPES[suffix]}", part_{i}, sizeof(part_{i})}},\n')
        f.write("\t{NULL, NULL, NULL, 0},\n};\n")


main()
