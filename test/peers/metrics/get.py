#!/usr/bin/env python3
"""The genuine Prometheus, from Debian, and a genuine collector of OpenTelemetry, from Go, in a folder that outlives the checks.

    get.py FOLDER      prints two lines: the folder of prometheus and promtool, and the collector; or "-" and why not

Prometheus comes from the PATH, else its package (19 MB) is fetched and unpacked, not installed: that would begin a service. The
collector is built of the modules of collector.yaml, some minutes once; what is not ready in SECONDS goes on the next time.
Exits 77 where neither can be had."""

import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.140.0"
SECONDS = 170


class Missing(Exception):
    """Why it cannot be had."""


def call(argv, why, seconds, **more):
    try:
        done = subprocess.run(["nice", "-n", "5", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, check=False, **more)
    except OSError as problem:
        raise Missing(f"{why}: {problem.strerror}") from problem
    except subprocess.TimeoutExpired as problem:
        raise Missing(f"{why}: not ready in {seconds} s, the next check goes on with it") from problem
    if done.returncode:
        raise Missing(f"{why}: {(done.stdout.strip().split(chr(10)) or [''])[-1][:200]}")


def prometheus(folder):
    there = shutil.which("prometheus")
    if there and shutil.which("promtool"):
        return os.path.dirname(there)
    home = os.path.join(folder, "prometheus")
    if not os.path.exists(os.path.join(home, "usr/bin/promtool")):
        if not shutil.which("apt-get"):
            raise Missing("prometheus is not installed, and there is no apt-get to fetch it")
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            call(["apt-get", "-q", "download", "prometheus"], "apt-get could not fetch prometheus", 100, cwd=fresh)
            call(["dpkg-deb", "-x", glob.glob(os.path.join(fresh, "*.deb"))[0], os.path.join(fresh, "tree")], "prometheus could not be unpacked", 60)
            shutil.rmtree(home, ignore_errors=True)
            os.rename(os.path.join(fresh, "tree"), home)
    return os.path.join(home, "usr/bin")


def collector(folder):
    with open(os.path.join(HERE, "collector.yaml"), encoding="utf-8") as f:
        wanted = BUILDER + "\n" + f.read()
    made, noted = os.path.join(folder, "collector/otelcol-ava"), os.path.join(folder, "collector.made")
    if os.path.exists(made) and os.path.exists(noted):
        with open(noted, encoding="utf-8") as f:
            if f.read() == wanted:
                return made
    go = next((p for p in [shutil.which("go"), "/usr/local/go/bin/go"] if p and os.access(p, os.X_OK)), None)
    if not go:
        raise Missing("go is not installed, of which a collector is built")
    env = dict(os.environ, GOPATH=os.path.join(folder, "go"), GOCACHE=os.path.join(folder, "gocache"), GOFLAGS="-modcacherw",
               GOTOOLCHAIN="local", PATH=os.path.dirname(go) + ":" + os.environ.get("PATH", ""))
    builder = os.path.join(folder, "go/bin/builder")
    if not os.path.exists(builder):
        call([go, "install", BUILDER], "go could not build a collector", SECONDS, env=env)
    call([builder, "--config", os.path.join(HERE, "collector.yaml")], "go could not build a collector", SECONDS, env=env, cwd=folder)
    with open(noted, "w", encoding="utf-8") as f:
        f.write(wanted)
    return made


def main(folder):
    os.makedirs(folder, exist_ok=True)
    had = 0
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for get in (prometheus, collector):
            try:
                print(get(folder))
                had += 1
            except Missing as why:
                print("-", why)
    return 0 if had else 77


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
