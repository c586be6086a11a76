#!/usr/bin/env python3
"""Questions to the logs: ava beside wc, rg, jq, SQLite (with indexes) and lnav,
DuckDB where they are installed. Usage: logs.py BUILD [--events N,...] [--rounds N]

Every file is read once before it is measured (warm). A figure is the best of
the rounds in milliseconds, start of the program included. Where the answers
of two programs to one question differ, the row says so. SQLite's load and the
size of its file stand in rows of their own; ava needs neither.
"""
import argparse, json, os, shutil, sqlite3, subprocess, sys, tempfile, time

RARE = "xylophone-7731"
SESSION = "5c3e1a52-6b0f-4d7e-9a51-000000000026"
DAY = ("2026-11-15", "2026-11-16")


def best(rounds, argv, env):
    out, least = b"", None
    for _ in range(rounds):
        begin = time.perf_counter()
        out = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        took = (time.perf_counter() - begin) * 1000
        least = took if least is None else min(least, took)
    return least, out


def files_of(root):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(root + "/logs") for f in fs if f.endswith(".jsonl"))


def load_sqlite(root, path):
    begin = time.perf_counter()
    db = sqlite3.connect(path)
    db.execute("pragma journal_mode=off")
    db.execute("create table e(lsn integer primary key,t text,type text,agent text,session text,model text,inp int,outp int,cost real,line text)")

    def rows():
        for name in files_of(root):
            with open(name) as f:
                for line in f:
                    v = json.loads(line)
                    m = v["metadata"] if v["eventType"] == "InferEnd" else {}
                    yield (v["lsn"], v["timestamp"], v["eventType"], v["agentId"], v["sessionId"], m.get("modelId"),
                           m.get("inputTokens"), m.get("outputTokens"), m.get("costCents"), line)

    db.executemany("insert into e values(?,?,?,?,?,?,?,?,?,?)", rows())
    for column in ("type", "agent", "session", "t"):
        db.execute(f"create index i_{column} on e({column})")
    db.commit()
    db.close()
    return (time.perf_counter() - begin) * 1000, os.path.getsize(path)


def questions(root, shape, ava, db):
    logs = root + "/logs"
    pipe = lambda text: ["sh", "-c", text]
    sql = lambda text: ["sqlite3", db, text]
    run = "S-100010"
    everything = f"cat {logs}/*/*.jsonl" if shape != "runs" else f"find {logs} -name '*.jsonl' -exec cat {{}} +"
    q = []
    if shape != "runs":
        q.append(("last 100", [ava, "logs", "-n", "100", "-o", "json"],
                  {"tail": pipe(f"tail -q -n 100 {files_of(root)[-1]}"), "sqlite": sql("select line from (select lsn,line from e order by lsn desc limit 100) order by lsn")}))
    q += [
        ("type Error", [ava, "logs", "--type", "error", "-o", "json"],
         {"rg": ["rg", "-IN", "--no-heading", '"eventType":"Error"', logs], "sqlite": sql("select line from e where type='Error' order by lsn"),
          "jq": pipe(f"{everything} | jq -c 'select(.eventType==\"Error\")'")}),
        ("a day, type Error", [ava, "logs", "--type", "error", "-S", DAY[0], "-U", DAY[1], "-o", "json"],
         {"sqlite": sql(f"select line from e where t>='{DAY[0]}' and t<'{DAY[1]}' and type='Error' order by lsn")}),
        ("one run", [ava, "logs"] + ([run] if shape == "runs" else ["--agent", run]) + ["-o", "json"],
         {"rg": ["rg", "-IN", "--no-heading", f'"agentId":"{run}"', logs], "sqlite": sql(f"select line from e where agent='{run}' order by lsn")}),
        ("one session", [ava, "logs", "--session", SESSION, "-o", "json"],
         {"rg": ["rg", "-IN", "--no-heading", SESSION, logs], "sqlite": sql(f"select line from e where session='{SESSION}' order by lsn")}),
        ("rare string", [ava, "logs", "--search", RARE, "-o", "json"],
         {"rg": ["rg", "-iIN", "--no-heading", RARE, logs], "sqlite": sql(f"select line from e where line like '%{RARE}%'")}),
        ("regex", [ava, "logs", "-g", "xylo[a-z]+-[0-9]{4}", "-o", "json"], {"rg": ["rg", "-iIN", "--no-heading", "xylo[a-z]+-[0-9]{4}", logs]}),
        ("count by type", [ava, "logs", "--count", "--by", "type", "-o", "json"], {"sqlite": sql("select type,count(*) from e group by type")}),
        ("sum by model", [ava, "logs", "--count", "--by", "model", "--type", "inferend", "-o", "json"],
         {"sqlite": sql("select model,count(*),sum(inp),sum(outp),sum(cost) from e where type='InferEnd' group by model")}),
    ]
    return q, pipe(f"{everything} | wc -l") if shape == "runs" else ["wc", "-l"] + files_of(root)


def measure(build, shape, events, rounds, work):
    root, db = f"{work}/{shape}", f"{work}/{shape}.db"
    for folder in ("ava", "subagents"):
        os.makedirs(f"{root}/logs/{folder}", mode=0o700)
    subprocess.run([f"{build}/bench/logs_gen", root, shape, str(events)], check=True)
    size = sum(os.path.getsize(f) for f in files_of(root))
    env = {"PATH": os.environ["PATH"], "HOME": work, "AVA_DATA_ROOT": root, "TZ": "UTC0", "LC_ALL": "C.UTF-8"}
    has = {p: shutil.which(p) for p in ("rg", "jq", "sqlite3", "lnav", "duckdb")}
    print(f"\n### {events:,} events, {shape}: {len(files_of(root)):,} files, {size / 1e6:.0f} MB\n", flush=True)
    load = load_sqlite(root, db) if has["sqlite3"] else None
    q, wc = questions(root, shape, f"{build}/src/cli/ava", db)
    print("| question | ava | rg | SQLite | jq | others |\n|---|---|---|---|---|---|")
    print(f"| wc -l | | | | | {best(rounds, wc, env)[0]:.1f} |", flush=True)
    for name, argv, peers in q:
        ms, out = best(rounds, argv, env)
        cells, lines = {}, out.count(b"\n")
        for peer, command in peers.items():
            if peer in ("rg", "jq") and not has[peer] or peer == "sqlite" and not load:
                continue
            cells[peer], got = best(1 if peer == "jq" else rounds, command, env)
            got = got.replace(b"\n\n", b"\n") if peer == "sqlite" else got
            cells[peer] = f"{cells[peer]:.1f}" + ("" if got.count(b"\n") == lines else f" ({got.count(bytes([10]))} lines, ava {lines})")
        other = " ".join(f"{p} {t}" for p, t in cells.items() if p not in ("rg", "sqlite", "jq"))
        print(f"| {name} | {ms:.1f} | {cells.get('rg', '')} | {cells.get('sqlite', '')} | {cells.get('jq', '')} | {other} |", flush=True)
    if load:
        print(f"| SQLite's load | | | {load[0]:.0f} ms, {load[1] / 1e6:.0f} MB | | |")
    missing = [p for p in has if not has[p]]
    if missing:
        print(f"\nNot installed, left out: {', '.join(missing)}.")
    shutil.rmtree(root)
    if os.path.exists(db):
        os.unlink(db)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--events", default="1000000")
    p.add_argument("--shapes", default="one,days,runs")
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="ava-bench-logs.")
    try:
        for events in o.events.split(","):
            for shape in o.shapes.split(","):
                measure(os.path.abspath(o.build), shape, int(events), o.rounds, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
