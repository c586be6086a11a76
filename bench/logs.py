#!/usr/bin/env python3
"""Questions to the logs: ava beside wc, rg, jq, SQLite (with indexes), and
lnav and DuckDB where they are installed. Usage: logs.py BUILD [--events N,...]
[--shapes one,days,runs] [--rounds N] [--duckdb NODE_MODULES]
[--without jq,lnav]

Every file is read once before it is measured (warm). A figure is the best of
the rounds in milliseconds, start of the program included; DuckDB's is without
the start of node, after a first answer. Where the answers of two programs to
one question differ in lines, the row says so. What SQLite's and DuckDB's load
and ava's index took, and their sizes, stand in rows of their own. A question of
ours that fails ends it, and where SQLite has another number of lines the exit code is 1.
"""
import argparse, json, os, shutil, sqlite3, subprocess, sys, tempfile, time

RARE = "xylophone-7731"
SESSION = "5c3e1a52-6b0f-4d7e-9a51-000000000026"
DAY = ("2026-11-15", "2026-11-16")


def best(rounds, argv, env):
    """Least milliseconds from spawn to exit, and what was written."""
    fd, least = os.memfd_create("out"), None
    path = shutil.which(argv[0])
    null = os.open("/dev/null", os.O_RDWR)
    for _ in range(rounds):
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        begin = time.perf_counter()
        pid = os.posix_spawn(path, argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, null, 0),
                             (os.POSIX_SPAWN_DUP2, fd, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
        status = os.waitpid(pid, 0)[1]
        if os.waitstatus_to_exitcode(status) not in (0, 5) and argv[0].endswith("/ava"):  # 5: no such run
            sys.exit(f"logs.py: {' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
        took = (time.perf_counter() - begin) * 1000
        least = took if least is None else min(least, took)
    out = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    os.close(null)
    return least, out


def duckdb(modules, db, ask):
    env = dict(os.environ, DUCKDB_MODULES=modules)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logs_duckdb.mjs")
    out = subprocess.run(["node", script, db, ask], env=env, stdout=subprocess.PIPE, check=True).stdout.split()
    return float(out[0]), int(out[1])


LNAV = {"ava_log": {"title": "ava", "json": True, "file-pattern": ".*\\.jsonl", "timestamp-field": "timestamp",
                    "line-format": [{"field": "timestamp"}, " ", {"field": "eventType"}],
                    "value": {"eventType": {"kind": "string"}, "agentId": {"kind": "string"}}}}


def lnav_format(home):
    os.makedirs(f"{home}/.config/lnav/formats/ava")
    with open(f"{home}/.config/lnav/formats/ava/ava.json", "w") as f:
        json.dump(LNAV, f)


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
    """Name, aim in ms per million events (w: times wc -l), ava's command, the others', DuckDB's."""
    logs = root + "/logs"
    pipe = lambda text: ["/bin/sh", "-c", text]
    sql = lambda text: ["sqlite3", db, text]
    rg = lambda *text: ["rg", "-IN", "--no-heading", "-g", "*.jsonl", *text, logs]
    run = "S-100010"
    everything = f"cat {logs}/*/*.jsonl" if shape != "runs" else f"find {logs} -name '*.jsonl' -exec cat {{}} +"
    one_run = [run] if shape == "runs" else ["--agent", run]
    lines = "select * from e where "
    # Over 10,000 files lnav takes minutes.
    lnav = {} if shape == "runs" else {"lnav": ["lnav", "-n", "-c", ";select count(*) from ava_log where eventType='Error'"]
                                       + files_of(root)}
    q = []
    if shape != "runs":
        q.append(("last 100", 2, ["-n", "100", "-o", "json"],
                  {"tail": ["tail", "-n", "100", files_of(root)[-1]],
                   "sqlite": sql("select line from (select lsn,line from e order by lsn desc limit 100) order by lsn")},
                  "select * from e order by lsn desc limit 100"))
    q += [
        ("type Error", 20, ["--type", "error", "-o", "json"],
         {"rg": rg('"eventType":"Error"'), "sqlite": sql("select line from e where type='Error' order by lsn"),
          "jq": pipe(f"{everything} | jq -c 'select(.eventType==\"Error\")'"),
          **lnav},
         lines + "type='Error' order by lsn"),
        ("a day, type Error", 20, ["--type", "error", "-S", DAY[0], "-U", DAY[1], "-o", "json"],
         {"sqlite": sql(f"select line from e where t>='{DAY[0]}' and t<'{DAY[1]}' and type='Error' order by lsn")},
         lines + f"t>='{DAY[0]}' and t<'{DAY[1]}' and type='Error' order by lsn"),
        ("a day", 20, ["-S", DAY[0], "-U", DAY[1], "-o", "json"],
         {"sqlite": sql(f"select line from e where t>='{DAY[0]}' and t<'{DAY[1]}' order by lsn")},
         lines + f"t>='{DAY[0]}' and t<'{DAY[1]}' order by lsn"),
        ("one run", 3, one_run + ["-o", "json"],
         {"rg": rg(f'"agentId":"{run}"'), "sqlite": sql(f"select line from e where agent='{run}' order by lsn")},
         lines + f"agent='{run}' order by lsn"),
        ("one session", 3, ["--session", SESSION, "-o", "json"],
         {"rg": rg(SESSION), "sqlite": sql(f"select line from e where session='{SESSION}' order by lsn")},
         lines + f"session='{SESSION}' order by lsn"),
        ("rare string", "w", ["--search", RARE, "-o", "json"],
         {"rg": rg("-i", RARE), "sqlite": sql(f"select line from e where line like '%{RARE}%'")},
         lines + f"content ilike '%{RARE}%'"),
        ("regex", None, ["-g", "xylo[a-z]+-[0-9]{4}", "-o", "json"], {"rg": rg("-i", "xylo[a-z]+-[0-9]{4}")},
         lines + "regexp_matches(content, 'xylo[a-z]+-[0-9]{4}', 'i')"),
        ("count by type", 250, ["--count", "--by", "type", "-o", "json"],
         {"sqlite": sql("select type,count(*) from e group by type"),
          "jq": pipe(f"{everything} | jq -r .eventType | sort | uniq -c")},
         "select type,count(*) from e group by type"),
        ("sum by model", 250, ["--count", "--by", "model", "--type", "inferend", "-o", "json"],
         {"sqlite": sql("select model,count(*),sum(inp),sum(outp),sum(cost) from e where type='InferEnd' group by model")},
         "select model,count(*),sum(inp),sum(outp),sum(cost) from e where type='InferEnd' group by model"),
    ]
    wc = pipe(f"{everything} | wc -l") if shape == "runs" else ["wc", "-l"] + files_of(root)
    return [(name, aim, [ava, "logs"] + args, peers, duck) for name, aim, args, peers, duck in q], wc


def index_size(root):
    folder = root + "/logs/index"
    return sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder)) if os.path.isdir(folder) else 0


def load_duckdb(o, root, db):
    if not o.duckdb:
        return None
    if os.path.exists(db):
        os.unlink(db)
    return duckdb(o.duckdb, db, f"load {root}/logs/*/*.jsonl")[0], os.path.getsize(db)


def print_row(name, aim, ms, cells, wc, millions):
    limit = None if aim is None else 1.5 * wc if aim == "w" else aim * millions
    verdict = "" if limit is None else f"{limit:.1f} {'met' if ms <= limit else 'missed'}"
    behind = [p for p in ("rg", "sqlite", "duckdb") if p in cells and cells[p][0] < ms]
    text = lambda p: f"{cells[p][0]:.1f}{cells[p][1]}" if p in cells else ""
    others = " ".join(f"{p} {text(p)}" for p in cells if p in ("tail", "lnav"))
    print(f"| {name} | **{ms:.1f}** | {verdict} | {text('rg')} | {text('sqlite')} | {text('duckdb')} | {text('jq')} | {others} |"
          f" {', '.join(behind) or '-'} |", flush=True)


def ask_peers(o, rounds, peers, duck, env, has, loaded, db, lines):
    cells = {}
    for peer, command in peers.items():
        if peer in has and not has[peer] or peer == "sqlite" and not loaded["sqlite"]:
            continue
        ms, got = best(1 if peer in ("jq", "lnav") else rounds, command, env)
        got = got.replace(b"\n\n", b"\n") if peer == "sqlite" else got
        n = got.count(b"\n")
        if peer == "sqlite" and n != lines:
            print(f"logs.py: {n} lines, ava has {lines}: {' '.join(command)}", file=sys.stderr)
            o.differ = True
        cells[peer] = ms, "" if n == lines or peer == "lnav" else f" ({n} lines, ava {lines})"
    if loaded["duckdb"]:
        ms, n = duckdb(o.duckdb, db + ".duckdb", duck)
        cells["duckdb"] = ms, "" if n == lines else f" ({n} lines, ava {lines})"
    return cells


def measure(o, build, shape, events, work):
    root, db = f"{work}/{shape}", f"{work}/{shape}.db"
    for folder in ("ava", "subagents"):
        os.makedirs(f"{root}/logs/{folder}", mode=0o700)
    subprocess.run([f"{build}/bench/logs_gen", root, shape, str(events)], check=True)
    size = sum(os.path.getsize(f) for f in files_of(root))
    env = {"PATH": os.environ["PATH"], "HOME": work, "AVA_DATA_ROOT": root, "TZ": "UTC0", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    has = {p: p not in o.without.split(",") and shutil.which(p) for p in ("rg", "jq", "sqlite3", "lnav")}
    print(f"\n### {events:,} events, {shape}: {len(files_of(root)):,} files, {size / 1e6:.0f} MB\n", flush=True)
    loaded = {"sqlite": load_sqlite(root, db) if has["sqlite3"] else None, "duckdb": load_duckdb(o, root, db + ".duckdb")}
    ask, wc = questions(root, shape, f"{build}/src/cli/ava", db)
    time.sleep(2.5)  # so that the logs rest
    first = best(1, [f"{build}/src/cli/ava", "logs", "--session", "nobody"], env)[0]
    wc_ms = best(o.rounds, wc, env)[0]
    print("| question | ava, ms | aim | rg | SQLite | DuckDB | jq | others | faster than ava |\n|---|---|---|---|---|---|---|---|---|")
    print(f"| wc -l | | | | | | | {wc_ms:.1f} | |", flush=True)
    for name, aim, argv, peers, duck in ask:
        ms, out = best(max(o.rounds, 5), argv, env)
        cells = ask_peers(o, o.rounds, peers, duck, env, has, loaded, db, out.count(b"\n"))
        print_row(name, aim, ms, cells, wc_ms, max(1, events / 1e6))
    stored = index_size(root)
    print(f"| making ava's index: the first question | {first:.0f} | | | | | | | |")
    print(f"| its size | {stored / 1e6:.1f} MB | < 5 %: {100 * stored / size:.2f} % {'met' if stored < size / 20 else 'missed'} | | "
          + " | ".join(f"load {v[0]:.0f} ms, {v[1] / 1e6:.0f} MB" if v else "" for v in (loaded["sqlite"], loaded["duckdb"]))
          + " | | | |")
    missing = [p for p in has if not has[p]] + ([] if o.duckdb else ["duckdb"])
    if missing:
        print(f"\nLeft out: {', '.join(missing)}.")
    shutil.rmtree(root)
    for f in (db, db + ".duckdb"):
        if os.path.exists(f):
            os.unlink(f)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--events", default="1000000")
    p.add_argument("--shapes", default="one,days,runs")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--without", default="", help="programs to leave out: jq,lnav")
    p.add_argument("--duckdb", help="node_modules with @duckdb/node-api")
    o = p.parse_args()
    o.differ = False
    work = tempfile.mkdtemp(prefix="ava-bench-logs.")
    lnav_format(work)
    try:
        for events in o.events.split(","):
            for shape in o.shapes.split(","):
                measure(o, os.path.abspath(o.build), shape, int(events), work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if o.differ else 0


if __name__ == "__main__":
    sys.exit(main())
