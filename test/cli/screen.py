"""What a terminal shows of a stream of bytes: enough of one for line editors.
Characters of East Asian width and emoji take two columns, combining ones none."""

import re
import unicodedata

SEQUENCE = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-B]|[^][()])", re.S)


def width(c):
    if unicodedata.combining(c) or c in "\ufe0e\ufe0f\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


class Screen:
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.gone = []  # rows scrolled off the top
        self.y = self.x = 0
        self.rest = b""
        self.bells = 0
        self.watched = False  # the program wants to know whether it is in front
        self.notices = []     # what it had told while it was not
        self.link = ""        # where what comes now leads
        self.links = []       # [address, text] of what was a link

    def lines(self):
        """Everything shown so far and not erased, without blanks at the ends."""
        rows = self.gone + self.cells
        text = ["".join(row).rstrip() for row in rows]
        while text and not text[-1]:
            text.pop()
        return text

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        at = 0
        while at < len(data):
            if data[at] == 0x1b:
                found = SEQUENCE.match(data, at)
                if not found:
                    self.rest = data[at:]
                    return
                self.sequence(found.group(0))
                at = found.end()
                continue
            size = 1 if data[at] < 0xc0 else 2 if data[at] < 0xe0 else 3 if data[at] < 0xf0 else 4
            if at + size > len(data):
                self.rest = data[at:]
                return
            self.put(data[at:at + size].decode(errors="replace"))
            at += size

    def put(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.x = max(self.x - 1, 0)
        elif c == "\a":
            self.bells += 1
        elif c == "\t":
            self.x = min((self.x // 8 + 1) * 8, self.columns - 1)
        elif c >= " ":
            self.show(c)

    def show(self, c):
        wide = width(c)
        if wide == 0:
            return
        if self.x + wide > self.columns:
            self.x = 0
            self.down()
        self.cells[self.y][self.x] = c
        if self.link:
            self.links[-1][1] += c
        if wide == 2 and self.x + 1 < self.columns:
            self.cells[self.y][self.x + 1] = ""
        self.x += wide

    def down(self):
        self.y += 1
        if self.y == self.rows:
            self.gone.append(self.cells.pop(0))
            self.cells.append([" "] * self.columns)
            self.y -= 1

    def command(self, text):
        kind, _, rest = text.rstrip("\a\x1b\\").partition(";")
        if kind == "8":
            self.link = rest.partition(";")[2]
            self.links += [[self.link, ""]] if self.link else []
        elif kind in ("9", "99", "777"):
            self.notices.append(rest)

    def sequence(self, seq):
        if seq[1:2] == b"]":
            self.command(seq[2:].decode(errors="replace"))
        if seq in (b"\x1b[?1004h", b"\x1b[?1004l"):
            self.watched = seq.endswith(b"h")
        if seq[1:2] != b"[" or re.search(rb"[^0-9;]", seq[2:-1]):
            return
        numbers = [int(n) if n else 0 for n in seq[2:-1].split(b";")] if seq[2:-1] else [0]
        n, what = max(numbers[0], 1), chr(seq[-1])
        row = self.cells[self.y]
        self.x = min(self.x, self.columns - 1) if what not in "m" else self.x
        if what == "A":
            self.y = max(self.y - n, 0)
        elif what == "B":
            self.y = min(self.y + n, self.rows - 1)
        elif what == "C":
            self.x = min(self.x + n, self.columns - 1)
        elif what == "D":
            self.x = max(self.x - n, 0)
        elif what == "G":
            self.x = min(n, self.columns) - 1
        elif what == "H":
            self.y = min(n, self.rows) - 1
            self.x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif what == "K":
            first, last = {0: (self.x, self.columns), 1: (0, self.x + 1)}.get(
                numbers[0], (0, self.columns))
            row[first:last] = [" "] * (last - first)
        elif what == "J":
            row[self.x:] = [" "] * (self.columns - self.x)
            for y in range(self.y + 1, self.rows):
                self.cells[y] = [" "] * self.columns
        elif what == "P":
            row[self.x:] = (row[self.x + n:] + [" "] * n)[:self.columns - self.x]
        elif what == "@":
            row[self.x:] = ([" "] * n + row[self.x:])[:self.columns - self.x]
        elif what == "X":
            row[self.x:self.x + n] = [" "] * min(n, self.columns - self.x)

    def resize(self, columns):
        """As terminals do that break their lines anew: here each row is one line of
        text, and a row that filled the old width goes on in the next."""
        text, row = [], []
        cursor = None
        for y, cells in enumerate(self.cells):
            if y == self.y:
                cursor = (len(text), len(row) + self.x)
            full = cells[-1] != " "
            row += cells if full else list("".join(cells).rstrip()) if cells else []
            if not full:
                text.append(row)
                row = []
        if row:
            text.append(row)
        out, where = [], (0, 0)
        for i, line in enumerate(text):
            need = max(len(line), cursor[1] + 1 if i == cursor[0] else 1)
            if i == cursor[0]:
                where = (len(out) + cursor[1] // columns, cursor[1] % columns)
            for at in range(0, need, columns):
                out.append((line[at:at + columns] + [" "] * columns)[:columns])
        extra = max(where[0] + 1 - self.rows, 0)
        self.gone += out[:extra]
        out = out[extra:extra + self.rows]
        self.cells = out + [[" "] * columns for _ in range(self.rows - len(out))]
        self.columns, self.y, self.x = columns, where[0] - extra, where[1]
