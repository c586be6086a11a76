#!/usr/bin/env python3
"""Pages to Markdown: ava-page beside @mozilla/readability with turndown (on linkedom).
Usage: web.py BUILD [--bytes N] [--rounds N] [--without-peer] [--write PAGE]

The pages are the fixtures of test/page whose main text is marked, and five large ones that are
made here, each of --bytes. ava-page is a process for each page, its start included, as avad
runs it (the sandbox around it is another figure: bench_exec); the peer is one process of node
that has warmed up on the page, its start not counted. It is handed UTF-8, whatever the page is
in. A figure is the median of the rounds, in milliseconds of processor time (user and system, all
threads), which others at work on the machine disturb less than they do a clock.

kept: of the words between the marks, how many are in the Markdown; extra: of the words of the
Markdown, how many stand outside of the marks. Fails when ava-page fails, or keeps less than 95 %
over all pages."""
import argparse, collections, html, html.parser, json, os, random, re, resource, shutil, statistics, subprocess, sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARKS = ("<!-- web.py: begin -->\n", "<!-- web.py: end -->\n")
ENCODINGS = {"shift_jis": "cp932", "gb18030": "gb18030", "euc-kr": "cp949", "windows-1252": "cp1252"}
NAV = "<nav><ul>" + "".join(f'<li><a href="/m{i}">Menu entry {i}</a></li>' for i in range(40)) + "</ul></nav>"
FOOT = "<footer><p>Imprint, privacy, terms and the rest of it.</p></footer>"


# ---- pages

def words_of(seed):
    r = random.Random(seed)
    stems = ["".join(r.choice("bdfgklmnprst") + r.choice("aeiou") for _ in range(r.randint(1, 4)))
             for _ in range(3000)]
    return r, lambda n: " ".join(r.choice(stems) for _ in range(n))


def article(r, some):
    links = f'<a href="/{some(1)}">{some(3)}</a>'
    return f"<h2>{some(4)}</h2><p>{some(60)}, {links} <b>{some(2)}</b>. {some(30)}.</p><p>{some(80)}.</p>"


def docs(r, some):
    code = "\n".join(f"{some(1)}({some(1)}, &amp;{some(1)});" for _ in range(6))
    return (f"<section><h3>{some(2)}</h3><p>{some(20)} <code>{some(1)}_{some(1)}()</code> {some(9)}.</p>"
            f'<pre><code class="language-c">{code}</code></pre><ul><li>{some(5)}</li><li>{some(7)}</li></ul></section>')


def table(r, some):
    return f"<tr><td>{some(1)}</td><td>{r.random():.4f}</td><td>{some(4)}</td><td><a href='/{some(1)}'>{some(2)}</a></td></tr>"


def forum(r, some):
    return (f'<div class="post"><div class="user"><a href="/u/{some(1)}">{some(1)}</a></div><div class="body">'
            f"<blockquote><p>{some(12)}</p></blockquote><p>{some(40)}.<br>{some(15)}.</p></div></div>")


def links(r, some):
    return f'<li><a href="https://{some(1).replace(" ", "")}.example/{some(1)}">{some(6)}</a> <span>{some(3)}</span></li>'


LARGE = {"article": (article, "<article><h1>Long</h1>", "</article>"), "docs": (docs, "<main><h1>Docs</h1>", "</main>"),
         "table": (table, "<h1>Table</h1><table><tr><th>a</th><th>b</th><th>c</th><th>d</th></tr>", "</table>"),
         "forum": (forum, '<h1>Thread</h1><div id="thread">', "</div>"), "links": (links, "<h1>Links</h1><ul>", "</ul>")}


def generate(name, size):
    part, before, after = LARGE[name]
    r, some = words_of(name)
    pieces, n = [], 0
    while n < size:
        pieces.append(part(r, some))
        n += len(pieces[-1])
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head><body>{NAV}'
            f'<div class="cookie-banner"><p>We value your privacy very much indeed.</p></div><!--main-->{before}'
            f'{"".join(pieces)}{after}<!--/main-->{FOOT}</body></html>').encode()


class Text(html.parser.HTMLParser):
    """What a page shows, roughly: for the words that are to be kept."""
    def __init__(self):
        super().__init__()
        self.out, self.quiet = [], 0

    def handle_starttag(self, tag, attrs):
        self.quiet += tag in ("script", "style", "textarea", "svg", "button", "select")
        self.out.append(" " if tag not in ("b", "i", "em", "span", "code", "sub", "sup", "strong", "a") else "")
        self.out += [v for k, v in attrs if tag == "img" and k == "alt" and v]

    def handle_endtag(self, tag):
        self.quiet -= tag in ("script", "style", "textarea", "svg", "button", "select")
        self.out.append(" " if tag in ("p", "td", "th", "li", "dt", "dd", "div", "h1", "h2", "h3") else "")

    def handle_data(self, data):
        self.out.append("" if self.quiet else data)


def count_words(text):
    return collections.Counter(re.findall(r"\w+", text))


def words_of_markdown(text):
    text = re.sub(r"\]\([^)\s]*\)", "] ", text)  # addresses are no words of the page
    text = re.sub(r"<https?:[^>]*>", " ", text)
    return count_words(html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)).replace("*", ""))


def wanted(text):
    reader = Text()
    reader.feed(" ".join(re.findall(r"<!--main-->(.*?)<!--/main-->", text, re.S)))
    return count_words("".join(reader.out))


def pages(folder, size):
    """(name, path of the bytes, path in UTF-8, words wanted)"""
    found = []
    fixtures = os.path.join(SOURCE, "test/page")
    for name in sorted(os.listdir(fixtures)):
        if name.endswith(".html"):
            with open(os.path.join(fixtures, name), "rb") as f:
                found.append((name[:-5], f.read()))
    found = [(n, b) for n, b in found if b"<!--main-->" in b or n == "charset_utf16"]
    found += [(f"large {n}", generate(n, size)) for n in LARGE]
    for n, body in found:
        path = os.path.join(folder, n.replace(" ", "_"))
        with open(path, "wb") as f:
            f.write(body)
        yield n, path, len(body)


# ---- runs

def run_ava(program, path):
    with open(path, "rb") as f:
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([program, "--type", "text/html", "--base", "https://site.example/"], stdin=f,
                              capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = (end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime) * 1000
    if done.returncode != 0:
        sys.exit(f"web.py: ava-page failed on {path}: {done.stderr.decode()}")
    head, _, text = done.stdout.decode().partition("\n")
    return took, json.loads(head), text


def node_ready(build):
    """Install the peer into the build folder; None: there is no node or no registry."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    folder = os.path.join(build, "web")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "readability.mjs"):
        shutil.copy(os.path.join(SOURCE, "bench/web", name), folder)
    if not os.path.isdir(os.path.join(folder, "node_modules")):
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"],
                              cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return None
    return folder


def run_peer(folder, rounds, work, names):
    out = os.path.join(work, "peer")
    os.makedirs(out)
    text = subprocess.run(["node", "readability.mjs", str(rounds), out, *[f"{work}/{n}.utf8" for n in names]],
                          cwd=folder, capture_output=True, text=True, check=True).stdout
    rows = {}
    for line in text.splitlines():
        row = json.loads(line)
        with open(f"{out}/{row['name']}.md", encoding="utf-8") as f:
            rows[row["name"][:-5]] = (statistics.median(row["took"]), f.read(), row["failed"])
    return rows


def shares(markdown, want):
    got = words_of_markdown(markdown)
    both = sum((got & want).values())
    return both / max(sum(want.values()), 1), 1 - both / max(sum(got.values()), 1)


# ---- the table

def percent(x):
    return f"{100 * x:.1f} %"


def table_of(rows, peer):
    lines = ["| page | KB | ava-page, ms | MB/s | kept | extra |" + (" peer, ms | MB/s | kept | extra | times |" if peer else ""),
             "|---|---|---|---|---|---|" + ("---|---|---|---|---|" if peer else "")]
    for r in rows:
        line = f"| {r['name']} | {r['bytes'] / 1e3:.0f} | {r['ms']:.1f} | {r['bytes'] / 1e3 / r['ms']:.1f} | {percent(r['kept'])} | {percent(r['extra'])} |"
        if peer:
            line += (f" {r['peer_ms']:.1f} | {r['bytes'] / 1e3 / r['peer_ms']:.1f} | {percent(r['peer_kept'])} |"
                     f" {percent(r['peer_extra'])} | {r['peer_ms'] / r['ms']:.1f} |")
        lines.append(line)
    return lines


def sum_of(name, rows, peer):
    row = {"name": f"**{name}** ({len(rows)} pages: sums, medians of shares)"}
    for key in ("bytes", "ms", *(["peer_ms"] if peer else [])):
        row[key] = sum(r[key] for r in rows)
    for key in ("kept", "extra", *(["peer_kept", "peer_extra"] if peer else [])):
        row[key] = statistics.median(r[key] for r in rows)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--bytes", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--without-peer", action="store_true")
    parser.add_argument("--write", help="put the table between the marks there")
    args = parser.parse_args()
    program = os.path.join(os.path.abspath(args.build), "src/gateway/ava-page")
    folder = None if args.without_peer else node_ready(os.path.abspath(args.build))
    if folder is None and not args.without_peer:
        print("no node, or npm could not install: readability is left out")
    rows = []
    with tempfile.TemporaryDirectory(prefix="ava-bench-web-") as work:
        for name, path, size in pages(work, args.bytes):
            took = []
            for _ in range(args.rounds):
                ms, head, text = run_ava(program, path)
                took.append(ms)
            with open(path, "rb") as f:
                utf8 = f.read().decode(ENCODINGS.get(head["charset"], head["charset"]), "replace")
            with open(path + ".utf8", "w", encoding="utf-8") as f:
                f.write(utf8)
            kept, extra = shares(text, wanted(utf8))
            rows.append({"name": name, "file": os.path.basename(path), "bytes": size, "ms": statistics.median(took),
                         "kept": kept, "extra": extra})
        if folder:
            told = run_peer(folder, args.rounds, work, [r["file"] for r in rows])
            for r in rows:
                with open(f"{work}/{r['file']}.utf8", encoding="utf-8") as f:
                    want = wanted(f.read())
                r["peer_ms"], text, failed = told[r["file"]]
                r["peer_kept"], r["peer_extra"] = shares(text, want)
                if failed:
                    print(f"{r['name']}: the peer failed: {failed}")
    small = [r for r in rows if not r["name"].startswith("large")]
    large = [r for r in rows if r["name"].startswith("large")]
    lines = table_of([*large, sum_of("large", large, folder), *small, sum_of("fixtures", small, folder)], folder)
    print("\n".join(lines))
    if args.write:
        with open(args.write) as f:
            before, found, rest = f.read().partition(MARKS[0])
        if not found:
            sys.exit(f"web.py: {args.write} has no line {MARKS[0].strip()}")
        with open(args.write, "w") as f:
            f.write(before + MARKS[0] + "\n".join(lines) + "\n" + MARKS[1] + rest.partition(MARKS[1])[2])
    short = [r["name"] for r in rows if r["kept"] < 0.9]
    if short or statistics.mean(r["kept"] for r in rows) < 0.95:
        sys.exit(f"web.py: text was lost: {', '.join(short)}")


if __name__ == "__main__":
    main()
