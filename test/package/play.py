#!/usr/bin/python3
"""play.py BUILD CACHE - what a release is made of, as a user gets it. `./dev check package` runs it.

script/release makes the files in BUILD; lintian reads the packages; they and the tarball are
installed into private roots (roots.py, kept in CACHE), used and removed (inside.sh); install.sh is
tried as a user of this machine. What cannot be had here is skipped with its reason."""

import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import yaml
import roots

count = failed = 0


def result(ok, name, why=""):
    global count, failed
    count += 1
    failed += not ok
    if why and not ok:
        print("".join(f"# {line}\n" for line in why.rstrip().split("\n")[-60:]), end="")
    print(f"{'ok' if ok else 'not ok'} {count} - {name}", flush=True)
    return ok


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def passed_on(name, done):
    """The checks of a script within ours."""
    global count, failed
    for line in done.stdout.split("\n"):
        match = re.match(r"(not ok|ok) \d+ (.*)", line)
        if match:
            count += 1
            failed += match.group(1) != "ok"
            print(f"{match.group(1)} {count} {match.group(2)}", flush=True)
        elif line.startswith("#"):
            print(line)
    if done.returncode and "\nnot ok" not in "\n" + done.stdout:
        result(False, name, done.stdout)


def check_files(out):
    """What can be said of the files by reading them."""
    said = dict(reversed(line.split("  ")) for line in open(out + "/SHA256SUMS", encoding="utf-8").read().splitlines())
    there = {name: hashlib.sha256(open(f"{out}/{name}", "rb").read()).hexdigest() for name in os.listdir(out) if not name.startswith("SHA256SUMS")}
    result(said == there, "SHA256SUMS has each file")
    sbom = json.load(open(glob.glob(out + "/*.spdx.json")[0], encoding="utf-8"))
    ids = [p["SPDXID"] for p in sbom["packages"]]
    names = {p["name"] for p in sbom["packages"]}
    ends = {e for r in sbom["relationships"] for e in (r["spdxElementId"], r["relatedSpdxElement"])} - {"SPDXRef-DOCUMENT"}
    result(len(ids) == len(set(ids)) and ends == set(ids) and {"libcurl4", "libsodium-dev", "libcurl", "preact"} <= names,
           "the SBOM names libraries of Debian, of meson and of npm, each once", str(sorted(names)))
    tar = tarfile.open(glob.glob(out + "/ava-*.tar.gz")[0])
    members = tar.getmembers()
    top = members[0].name
    files = {m.name.removeprefix(top + "/") for m in members}
    result({"bin/ava", "bin/avad", "libexec/ava/ava-page", "libexec/ava/ava-sandbox", "lib/ava/libcurl.so.4", "lib/ava/libmd4c.so.0",
            "lib/systemd/user/ava.service", "share/doc/ava/README.md", "share/man/man1/ava.1", "share/bash-completion/completions/ava", "install.sh"} <= files and
           all(m.name == top or m.name.startswith(top + "/") for m in members) and not any(f.startswith("lib/ava/libc.so") for f in files),
           "the tarball has programs, libraries but libc, pages of the manual and completions, in one folder", str(sorted(files)))
    result(len({(m.uid, m.gid, m.uname, m.mtime) for m in members}) == 1 and [m.name for m in members] == sorted(
        (m.name for m in members), key=lambda n: n.split("/")), "nothing in it tells who packed it, or when")
    work = os.path.abspath(out).encode()
    told = [m.name for m in members if m.isfile() and work in tar.extractfile(m).read()]
    result(not told, "nor where it was built", str(told))


def check_others(out):
    """The flake, the Containerfile and compose.yaml say what their readers understand."""
    text = open(ROOT + "/packaging/Containerfile", encoding="utf-8").read()
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).strip().split("\n")
    words = [line.split(None, 1)[0] for line in lines]
    copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "VOLUME", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    result(words[0] == "FROM" and set(words) <= known and all(len(glob.glob(f"{out}/{name}")) == 1 for name in copied) and
           all(isinstance(json.loads(line.split(None, 1)[1]), list) for line in lines if line.split()[0] in ("ENTRYPOINT", "CMD", "VOLUME")),
           "the Containerfile parses, and a release has what it copies", str(lines))
    compose = yaml.safe_load(open(ROOT + "/packaging/compose.yaml", encoding="utf-8"))
    services = compose["services"]
    volumes = {v.split(":")[0] for s in services.values() for v in s.get("volumes", [])}
    built = services["ava"]["build"]
    result(all(set(s.get("depends_on", [])) <= set(services) and ("image" in s) != ("build" in s) for s in services.values()) and
           volumes == set(compose["volumes"]) and os.path.exists(os.path.normpath(os.path.join(ROOT, "packaging", built["context"], built["dockerfile"]))) and
           services["ava"]["environment"]["AVA_LOCAL_BASE_URL"].endswith(services["ollama"]["environment"]["OLLAMA_HOST"] + "/v1"),
           "compose.yaml parses, and its services know each other", str(compose))
    version = re.search(r"version: '([^']+)'", open(ROOT + "/meson.build", encoding="utf-8").read()).group(1)
    flake = open(ROOT + "/flake.nix", encoding="utf-8").read()
    result(f'version = "{version}";' in flake, "the flake has the version of meson.build")
    if shutil.which("nix-instantiate"):
        done = roots.run(["nix-instantiate", "--parse", ROOT + "/flake.nix"])
        result(done.returncode == 0, "the flake parses", done.stdout)
    else:
        skip("the flake parses", "there is no nix")
    builder = next((b for b in ("podman", "docker") if shutil.which(b) and roots.run([b, "info"], 30).returncode == 0), None)
    if not builder or roots.run([builder, "image", "inspect", "debian:12-slim"]).returncode and roots.run([builder, "pull", "debian:12-slim"], 60).returncode:
        skip("the container is built", "no builder of containers works here, or it cannot have debian:12-slim")
    else:
        done = roots.run([builder, "build", "-f", ROOT + "/packaging/Containerfile", "-t", "ava-check", out], 900)
        if result(done.returncode == 0, "the container is built", done.stdout):
            done = roots.run([builder, "run", "--rm", "ava-check", "version"])
            result(done.returncode == 0, "and starts", done.stdout)


def check_lintian(out):
    if not shutil.which("lintian"):
        return skip("lintian", "it is not installed")
    debs = glob.glob(out + "/*.deb")
    done = roots.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *debs])
    result(done.returncode == 0, "lintian has no error and no warning without an override", done.stdout)


def check_home(out, home):
    """install.sh, as a user: twice, over another's program, from broken bytes, and away again."""
    tarball = glob.glob(out + "/ava-*.tar.gz")[0]
    env = {"HOME": home, "PATH": f"{home}/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    here = home + "/files"
    os.makedirs(home + "/.local/bin")
    shutil.copytree(out, here)

    def sh(*argv, **more):
        return roots.run(["sh", here + "/install.sh", *argv], env={**env, **more})

    def listed():
        return sorted(os.path.join(d, n) for d, ds, ns in os.walk(home) for n in ds + ns)

    before = listed()
    name = re.sub(r"-linux-.*", "", os.path.basename(tarball))
    for what, path in (("program", "bin/ava"), ("page of a manual", "share/man/man1/ava.1"), ("folder", f"lib/{name}/bin/ava")):
        path = f"{home}/.local/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("another's\n")
        stood = listed()
        done = sh()
        result(done.returncode == 1 and "is there and is not of this script" in done.stdout and
               set(listed()) - {home + "/.local/lib"} == set(stood) - {home + "/.local/lib"},
               f"install.sh leaves another's {what} alone, and begins nothing", done.stdout)
        os.remove(path)
        while os.path.dirname(path) not in before:
            path = os.path.dirname(path)
            os.rmdir(path)
    with open(here + "/" + os.path.basename(tarball), "ab") as f:
        f.write(b"x")
    done = sh()
    result(done.returncode == 1 and "is not what" in done.stdout and listed() == before, "and takes no file that SHA256SUMS does not say", done.stdout)
    shutil.copy(tarball, here)
    os.symlink(home, home + "-by-link")
    done = sh(HOME=home + "-by-link")
    os.remove(home + "-by-link")
    version = roots.run(["ava", "version"], env=env)
    result(done.returncode == 0 and version.returncode == 0, "it installs", done.stdout + version.stdout)
    if shutil.which("man"):
        pages = [roots.run(["man", "-w", *words.split()], env=env).stdout.strip() for words in ("ava", "ava-run", "5 ava-config", "8 avad")]
        result(all(page.startswith(home + "/.local/") for page in pages), "man finds its pages by PATH", str(pages))
    folder = glob.glob(home + "/.local/lib/ava-*")[0]
    old = home + "/.local/lib/ava-0.0.1"
    shutil.copytree(folder, old, symlinks=True)  # an older one, whose links are its own
    for link in open(old + "/links", encoding="utf-8").read().split():
        os.remove(f"{home}/.local/{link}")
        os.symlink(f"{old}/bin/ava", f"{home}/.local/{link}")
    os.symlink(f"{old}/bin/ava", home + "/.local/bin/ava-old")
    with open(old + "/links", "a", encoding="utf-8") as f:
        f.write("bin/ava-old\n")
    done = sh()
    result(done.returncode == 0 and os.readlink(home + "/.local/bin/ava") == folder + "/bin/ava" and
           (f"left {old}, since a daemon of another data root" in done.stdout or not os.path.exists(old)), "over an older one its links lead to the new one", done.stdout)
    data = {"AVA_DATA_ROOT": home + "/data"}
    roots.run(["ava", "ps"], env={**env, **data})
    done = sh(**data)
    result(done.returncode == 0 and "`ava restart`" in done.stdout, "where a daemon runs, ava restart is named", done.stdout)
    done = sh()
    result(done.returncode == 0 and "a daemon of ava runs" not in done.stdout, "and not where it is one of another data root", done.stdout)
    done = roots.run(["ava", "restart"], env={**env, **data})
    result(done.returncode == 0, "and works", done.stdout)
    check_settings(env, home)
    with open(home + "/data/ava.lock", encoding="ascii") as f:
        pid = f.readline().strip()
    done = sh("--uninstall", **data)
    left = [path for path in listed() if path not in before and not path.startswith((home + "/data", home + "/.cursor", home + "/.claude", home + "/.codex"))]
    result(done.returncode == 0 and not left and os.path.exists(home + "/data/ava.lock"), "what it did is undone, and data stay", done.stdout + str(left))
    result(f"kill {pid} ends it" in done.stdout and f"{home}/data (" in done.stdout, "and it says what runs on and what stays", done.stdout)
    os.kill(int(pid), signal.SIGTERM)
    told = {name: "ava" in text_of(f"{home}/{name}") for name in (".claude/settings.json", ".claude.json", ".codex/config.toml", ".cursor/mcp.json")}
    result(list(told.values()) == [False, False, False, True], "no settings of other programs start it, and another ava's stay", str(told) + done.stdout)
    result(sh("--uninstall").returncode == 1, "there is nothing to undo twice")


def text_of(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def check_settings(env, home):
    """Settings of other programs that start the installed ava, and one with another ava."""
    os.mkdir(home + "/.cursor")
    with open(home + "/.cursor/mcp.json", "w", encoding="utf-8") as f:
        json.dump({"mcpServers": {"ava": {"command": "/opt/bin/ava", "args": ["mcp"]}}}, f)
    done = [roots.run(["ava", *words.split()], env=env) for words in ("hooks install", "mcp install claude", "mcp install codex")]
    names = (".claude/settings.json", ".claude.json", ".codex/config.toml")
    result(not any(d.returncode for d in done) and all(home + "/.local/bin/ava" in text_of(f"{home}/{name}") for name in names),
           "Claude Code and Codex have it in their settings", "".join(d.stdout for d in done))


def check_unpacked(out, home):
    """The tarball by itself, in a folder with a blank: it finds its parts, and makes the text of pages that the package makes."""
    tar = tarfile.open(glob.glob(out + "/ava-*.tar.gz")[0])
    tar.extractall(home + "/a place")
    top = glob.glob(home + "/a place/ava-*")[0]
    env = {"HOME": home, "AVA_DATA_ROOT": home + "/unpacked", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    done = roots.run([top + "/bin/ava", "run", "Where is a torn page?", "--yes"], cwd=HERE, env=env)
    result(done.returncode == 0, "an unpacked tarball runs where it is", done.stdout)
    doctor = json.loads(roots.run([top + "/bin/ava", "doctor", "--json"], env=env).stdout)
    found = [c["detail"] for c in doctor["checks"] if c["name"] == "program"]
    result(any(top + "/bin/avad" in detail for detail in found), "by its own daemon", str(doctor))
    roots.run([top + "/bin/ava", "stop"], env=env)
    roots.run(["dpkg-deb", "-x", glob.glob(out + "/ava_*.deb")[0], home + "/deb"])
    pages = [open(name, "rb").read() for name in sorted(glob.glob(ROOT + "/test/page/*.html"))]
    pages += [b"<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2", b"<meta charset=gb18030><p>\xc4\xe3\xba\xc3"]
    texts = [[subprocess.run([program, "--type", "text/html"], input=page, capture_output=True, check=False).stdout for page in pages]
             for program in (top + "/libexec/ava/ava-page", home + "/deb/usr/libexec/ava/ava-page")]
    result(texts[0] == texts[1] and len(set(texts[0])) == len(pages) > 40 and "Привет".encode() in texts[0][-2],
           "and its pages are those of the package", str([i for i in range(len(pages)) if texts[0][i] != texts[1][i]]))


def figures(out, home):
    for name in sorted(os.listdir(out)):
        print(f"# {os.path.getsize(out + '/' + name) / 1e6:.1f} MB {name}")
    tar = tarfile.open(glob.glob(out + "/ava-*.tar.gz")[0])
    print(f"# {sum(m.size for m in tar.getmembers()) / 1e6:.1f} MB unpacked")
    for program in ("bin/ava", "bin/avad"):
        path = glob.glob(f"{home}/a place/ava-*/{program}")[0]
        best = 1e9
        for _ in range(20):
            began = time.monotonic()
            subprocess.run([path, "version" if program == "bin/ava" else "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            best = min(best, time.monotonic() - began)
        print(f"# {best * 1000:.1f} ms to start {program}")


def check_root(name, how, made, out, work, cache):
    try:
        root = made(cache)
        given = f"{work}/in-{how}"
        shutil.rmtree(given, ignore_errors=True)
        shutil.copytree(out, given)
        if how == "deb":
            shutil.copytree(roots.needs(cache, root, glob.glob(out + "/*.deb")), given + "/needs", ignore=lambda *_: ["partial", "lock", "for.txt"])
    except roots.Skip as why:
        return skip(name, str(why))
    shutil.copy(HERE + "/inside.sh", given)
    with open(given + "/version", "w", encoding="utf-8") as f:
        f.write(re.search(r"ava-([^/]*)-linux", glob.glob(out + "/ava-*.tar.gz")[0]).group(1))
    print(f"# {name}")
    passed_on(name, roots.inside(root, f"{work}/over", given, ["sh", "/in/inside.sh", how]))
    shutil.rmtree(given)


def main():
    build, cache = sys.argv[1:]
    out, home = build + "/out", os.environ["HOME"]
    if not os.path.exists(ROOT + "/web/dist/index.html") or not os.path.exists(ROOT + "/.git"):
        print("the page is not built, or this is no clone: there is nothing to make a release of")
        return 77
    if not shutil.which("dh"):
        print("debhelper is not installed: no packages can be made")
        return 77
    began = time.monotonic()
    key = home + "/ava.key"
    signs = shutil.which("minisign") and roots.run(["minisign", "-G", "-W", "-p", home + "/ava.pub", "-s", key]).returncode == 0
    done = roots.run([ROOT + "/script/release", *(["--sign", key] if signs else []), out], 1800)
    print(f"# made in {time.monotonic() - began:.0f} s")
    print("".join(f"# {line}\n" for line in done.stdout.split("\n") if line.startswith("release: ")), end="")
    if not result(done.returncode == 0, "a release is made", done.stdout):
        return 1
    if signs:
        done = roots.run(["minisign", "-V", "-p", home + "/ava.pub", "-m", out + "/SHA256SUMS"])
        result(done.returncode == 0, "its signature is that of the key", done.stdout)
    else:
        skip("its signature is that of the key", "there is no minisign that makes a key without a password")
    check_files(out)
    check_others(out)
    check_lintian(out)
    check_home(out, home + "/user")
    check_unpacked(out, home)
    figures(out, home)
    check_root("deb in a bare Debian", "deb", roots.debian, out, build, cache)
    check_root("tarball in a bare Debian", "tarball", roots.debian, out, build, cache)
    check_root("tarball in a bare Ubuntu 24.04", "tarball", roots.ubuntu, out, build, cache)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
