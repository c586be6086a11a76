"""Manual pages in the macros of man: text escaped, and Markdown as doc/ has it turned into them.

Taken of Markdown: headings, paragraphs, fenced code, lists, tables, **bold**, `code` and links,
whose address is left out. A row of a table becomes an item: its first cell, then that of the column
"what" (else the last), then the others in parentheses, with the head of their column."""

import re
import textwrap

FENCE = re.compile(r"^```")
CELL = re.compile(r"(?<!\\)\|")


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line
                     for line in text.split("\n"))


def inline(text):
    """A text of one line: `code` and **bold** are bold, links are their words."""
    out = []
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("\\|", "|")
    for i, part in enumerate(re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text)):
        if i % 2:
            part = "\\fB" + escape(part[1:-1] if part[0] == "`" else part[2:-2]).removeprefix("\\&") + "\\fR"
        else:
            part = escape(part) if i == 0 else escape("x" + part)[1:]
        out.append(part)
    return "".join(out)


def code(lines, out):
    out += [".sp", ".RS 4", ".nf", *(escape(line.replace("\t", "    ")) for line in lines), ".fi", ".RE"]


def item(tag, text, out):
    out += [".TP", inline(tag) or "\\&", inline(text) or "\\&"]


def cells(line):
    return [cell.strip() for cell in CELL.split(line.strip())[1:-1]]


def table(lines, out):
    head = cells(lines[0])
    what = head.index("what") if "what" in head else len(head) - 1
    for line in lines[2:]:
        row = cells(line)
        others = ", ".join(f"{name} {cell}".strip() for i, (name, cell) in enumerate(zip(head, row))
                           if cell and i not in (0, what))
        item(row[0], f"{row[what]} ({others})" if others else row[what], out)


def markdown(text, out):
    """Append the sections of a page; its title is left out."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, end = lines[at], at + 1
        if FENCE.match(line):
            while end < len(lines) and not FENCE.match(lines[end]):
                end += 1
            code(lines[at + 1:end], out)
            end += 1
        elif line.startswith("# "):
            pass
        elif line.startswith("## "):
            out.append(f'.SH "{inline(line[3:]).upper() if "`" not in line else inline(line[3:])}"')
        elif line.startswith("#"):
            out.append(f'.SS "{inline(line.lstrip("# "))}"')
        elif line.startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            table(lines[at:end], out)
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not re.match(r"[#|`-] |```|\||\d+\. ", lines[end]):
                end += 1
            mark = re.match(r"(-|\d+\.) ", line)
            text = inline(" ".join(part.strip() for part in lines[at:end])[mark.end() if mark else 0:])
            out += [f'.IP "{escape(mark[1])}" 4' if mark else ".PP", text]
        at = end


def laid_out(lines):
    """The source of a page: no line of text that is too long, no paragraph that is empty."""
    out, plain = [], False
    for line in "\n".join(lines).split("\n"):
        plain = line == ".nf" or (plain and line != ".fi")
        if line in (".PP", ".sp") and out[-1].startswith((".SH", ".SS", ".PP", ".sp")):
            continue
        if plain or line.startswith(".") or len(line) < 80 or out[-1] == ".TP":
            out.append(line)
            continue
        for part in textwrap.wrap(line, 78, break_long_words=False, break_on_hyphens=False):
            out.append("\\&" + part if part[0] in ".'" else part)
    return "\n".join(out) + "\n"
