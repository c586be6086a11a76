#!/usr/bin/python3
"""Compute test/golden/calendar.tsv a second time, from what the forms mean.

A row is an expression, a zone, and what it does in the year 2025 (UTC): how often it is due, the
first and the last time, and the times within two hours of each change of the zone's clock. The
test `calendar` plays calendar_next over the same rows. Here each local day that matches is laid
out, and each of its times carried to UTC by Python's zoneinfo: one that does not exist is the
instant of the change, one that exists twice the first. Rows of systemd's form are compared with
`systemd-analyze calendar`, where that is there, on days without a change. With --write the
table is made anew from its first two columns."""

import datetime as dt
import functools
import os
import re
import shutil
import subprocess
import sys
import zoneinfo

sys.dont_write_bytecode = True
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "calendar.tsv")
UTC = dt.timezone.utc
BEGIN, END = dt.datetime(2025, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, tzinfo=UTC)
ANCHOR = dt.datetime(2024, 12, 31, 23, 10, tzinfo=UTC)
SHOWN = 20
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
WORDS = {"minutely": "*-*-* *:*", "hourly": "*-*-* *:00", "daily": "*-*-* 00:00", "midnight": "*-*-* 00:00",
         "weekly": "Mon *-*-* 00:00", "monthly": "*-*-01 00:00", "quarterly": "*-1,4,7,10-01 00:00",
         "semiannually": "*-1,7-01 00:00", "yearly": "*-01-01 00:00", "annually": "*-01-01 00:00"}


def numbers(text, least, most, between, names=(), back=False):
    """The set that a field means."""
    def value(word):
        word = word.lower()
        return names.index(word[:3]) + least if word[:3] in names else int(word)
    found = set()
    for item in text.split(","):
        item, _, step = item.partition("/")
        step = int(step or 0)
        if item == "*":
            low, high = least, most
        elif between in item:
            low, high = (value(w) for w in item.split(between))
        else:
            low = high = value(item)
            if step:
                low, high = (1, low) if back else (low, most)
        found |= set(range(high, low - 1, -step) if back and step else range(low, high + 1, step or 1))
    return found


class Pattern:
    def __init__(self, text):
        if text == "@weekly":
            text = "0 0 * * 0"
        text = WORDS.get(text.lstrip("@"), text)
        words = text.split()
        self.either = self.back = False
        self.years, self.seconds = None, {0}
        if len(words) == 5:
            minute, hour, day, month, weekday = words
            self.either = day[0] != "*" and weekday[0] != "*"
            self.minutes, self.hours = numbers(minute, 0, 59, "-"), numbers(hour, 0, 23, "-")
            self.days, self.months = numbers(day, 1, 31, "-"), numbers(month, 1, 12, "-", MONTHS)
            self.weekdays = {d % 7 for d in numbers(weekday, 0, 6, "-", DAYS)}
            return
        self.weekdays = set(range(7))
        if words[0][0].isalpha():
            self.weekdays = {d % 7 for d in numbers(words.pop(0).rstrip(","), 0, 6, "..", DAYS)}
        self.days, self.months = set(range(1, 32)), set(range(1, 13))
        if words and ":" not in words[0]:
            date = words.pop(0)
            self.back = "~" in date
            *year, month, day = re.split("[-~]", date)
            if year and year[0] != "*":
                self.years = numbers(year[0], 1970, 2225, "..")
            self.months, self.days = numbers(month, 1, 12, ".."), numbers(day, 1, 31, "..", back=self.back)
        time = (words[0] if words else "0:0").split(":")
        self.hours, self.minutes = numbers(time[0], 0, 23, ".."), numbers(time[1], 0, 59, "..")
        if len(time) > 2:
            self.seconds = numbers(time[2], 0, 59, "..")

    def on(self, day):
        last = (day.replace(day=28) + dt.timedelta(days=4)).replace(day=1) - dt.timedelta(days=1)
        date = (last.day - day.day + 1 if self.back else day.day) in self.days
        weekday = day.isoweekday() % 7 in self.weekdays
        return (day.month in self.months and (self.years is None or day.year in self.years)
                and ((date or weekday) if self.either else (date and weekday)))


@functools.lru_cache(None)
def changes(zone):
    """The instants of 2025 at which the zone's offset changes, to the minute."""
    found, at = [], BEGIN - dt.timedelta(days=2)
    while at < END + dt.timedelta(days=2):
        then = at + dt.timedelta(hours=1)
        if at.astimezone(zone).utcoffset() != then.astimezone(zone).utcoffset():
            low, high = at, then
            while high - low > dt.timedelta(minutes=1):
                middle = low + dt.timedelta(minutes=int((high - low).total_seconds() // 120))
                same = middle.astimezone(zone).utcoffset() == at.astimezone(zone).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(high)
        at = then
    return found


def to_utc(local, zone, turns):
    """The instant of a local time. One that does not exist comes back from UTC as another."""
    at = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None, fold=0) == local:
        return at
    return min(turns, key=lambda t: abs(t - at))


@functools.lru_cache(None)
def fires(text, name):
    return list(laid_out(text, name))


def laid_out(text, name):
    zone = zoneinfo.ZoneInfo(name)
    if text.startswith("every "):
        unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}
        step = dt.timedelta(seconds=sum(int(n) * unit[u] for n, u in re.findall(r"(\d+)([smhd])", text[6:])))
        at = ANCHOR + step
        while at < END:
            if at >= BEGIN:
                yield at
            at += step
        return
    turns = changes(zone)
    once = text.startswith("at ")
    pattern, day, seen = Pattern(text.removeprefix("at ")), dt.date(2024, 12, 29), set()
    times = [dt.time(h, m, s) for h in sorted(pattern.hours) for m in sorted(pattern.minutes)
             for s in sorted(pattern.seconds)]
    while day < dt.date(2026, 1, 4):
        if pattern.on(day):
            for time in times:
                at = to_utc(dt.datetime.combine(day, time), zone, turns)
                if (ANCHOR if once else BEGIN) <= at < END and at not in seen:
                    seen.add(at)
        day += dt.timedelta(days=1)
    yield from sorted(seen)[:1 if once else None]


def stamp(at):
    return at.strftime("%m-%dT%H:%M:%S")


def row(text, name):
    found = fires(text, name)
    around = []
    for turn in changes(zoneinfo.ZoneInfo(name)):
        if BEGIN <= turn < END:
            near = [at for at in found if abs(at - turn) <= dt.timedelta(hours=2)]
            around.append(stamp(turn) + ":" + ",".join(map(stamp, near[:SHOWN])))
    ends = [stamp(found[0]), stamp(found[-1])] if found else ["-", "-"]
    return "\t".join([text, name, str(len(found)), *ends, " ".join(around) or "-"])


def systemd(text, name):
    """The first times by systemd-analyze; those on days with a change are left out of both."""
    if not re.search(r"[:~]|[a-z]", text) or text.startswith(("@", "every", "at ")) or len(text.split()) == 5 \
            or "*/" in text:
        return None
    got = subprocess.run(["systemd-analyze", "calendar", "--iterations=40", "--base-time=2024-12-31 23:59:59 UTC",
                          f"{text} {name}"], capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    times = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", got.stdout)
    times = [dt.datetime.fromisoformat(t).replace(tzinfo=UTC) for t in times]
    zone = zoneinfo.ZoneInfo(name)
    days = {t.astimezone(zone).date() + dt.timedelta(days=d) for t in changes(zone) for d in (-1, 0, 1)}
    quiet = lambda found: [t for t in found if t.astimezone(zone).date() not in days]
    ours = quiet(t for t in fires(text, name) if not times or t <= times[-1])
    theirs = quiet(t for t in times if t < END)
    return None if ours == theirs else f"{text} {name}: systemd has {theirs[:3]}, we {ours[:3]} ({got.stderr.strip()})"


def main():
    with open(TABLE, encoding="utf-8") as f:
        lines = f.read().splitlines()
    rows = [row(*line.split("\t")[:2]) for line in lines]
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write("\n".join(rows) + "\n")
        return 0
    wrong = [f"{line}\n  is by zoneinfo\n{new}" for line, new in zip(lines, rows) if line != new]
    if shutil.which("systemd-analyze"):
        told = [systemd(*line.split("\t")[:2]) for line in lines]
        wrong += [t for t in told if t]
    else:
        print("# systemd-analyze is not here: rows are compared with zoneinfo alone")
    print("\n".join(wrong) or f"{len(lines)} rows agree")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
