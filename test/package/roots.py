"""Private roots to install into: bare systems by debootstrap, kept between checks, and what runs in them.

A root has the minimal system, bubblewrap and certificates, and nothing else. A check sees an overlay
of it, in namespaces of its own without a network, which end with the check. The mirror is the one
that apt has here; Ubuntu's is debootstrap's own."""

import glob
import os
import re
import shutil
import subprocess
import sys

IN_ROOT = """set -e
umask 022
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
ip link set lo up
cd "$2/root"
mkdir in .old
cp -r "$3"/. in
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
pivot_root . .old
umount -l /.old
rmdir /.old
cd /
shift 3
exec "$@" </dev/null
"""


class Skip(Exception):
    """A reason why this machine cannot have a root."""


def run(argv, seconds=600, **options):
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=seconds, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return subprocess.CompletedProcess(argv, 127, str(problem))


def may():
    """Only root makes device files, and namespaces are not everywhere."""
    if os.geteuid() != 0:
        raise Skip("only root makes a private root")
    for program in ("debootstrap", "unshare", "pivot_root", "ip"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    if run(["unshare", "--mount", "--pid", "--fork", "--net", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).returncode:
        raise Skip("there are no namespaces in here")


def codename():
    said = dict(re.findall(r'^(\w+)="?([^"\n]*)', open("/etc/os-release", encoding="utf-8").read(), re.M))
    if said.get("ID") != "debian":
        raise Skip("this is no Debian, whose packages would be built here")
    return said["VERSION_CODENAME"]


def mirror(name):
    rows = run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]).stdout
    for row in rows.split("\n"):
        if row.startswith(name + " "):
            return row.split()[1]
    raise Skip(f"apt has no sources of {name} here")


def make(cache, name, argv):
    """cache/NAME, by debootstrap; one that was not finished is made anew."""
    root, part = os.path.join(cache, name), os.path.join(cache, name + ".part")
    if os.path.isdir(root):
        return root
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(cache, exist_ok=True)
    done = run(["debootstrap", "--variant=minbase", "--include=bubblewrap,ca-certificates", *argv[:1], part, *argv[1:]])
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        raise Skip(f"debootstrap could not make {name}: {done.stdout.strip().rsplit(chr(10), 1)[-1][:200]}")
    for left in glob.glob(part + "/var/cache/apt/archives/*.deb"):
        os.remove(left)
    os.rename(part, root)
    return root


def debian(cache):
    may()
    name = codename()
    return make(cache, f"debian-{name}", [name, mirror(name)])


def ubuntu(cache):
    """24.04. Debian has no key of Ubuntu's, so debootstrap takes it unchecked: only where one has asked for it."""
    may()
    if not os.environ.get("AVA_UBUNTU"):
        raise Skip("AVA_UBUNTU=1 has debootstrap fetch Ubuntu 24.04, without a signature that could be checked here")
    name = "/usr/share/debootstrap/scripts/gutsy"  # the script of all releases since
    with open(name, encoding="utf-8") as script:
        places = re.findall(r"\bhttp://archive\.\S+", script.read())
    if not places:
        raise Skip("debootstrap knows no mirror of Ubuntu's")
    return make(cache, "ubuntu-noble", ["noble", places[0], name])


def needs(cache, root, debs):
    """The packages that these depend on and the root has not, fetched once: their folder."""
    wanted = " ".join(sorted(set(run(["sh", "-c", 'for d; do dpkg-deb -f "$d" Depends; done', "sh", *debs]).stdout.replace("\n", ", ").split(", "))))
    folder = os.path.join(cache, "needs-" + os.path.basename(root))
    told = os.path.join(folder, "for.txt")
    if os.path.exists(told) and open(told, encoding="utf-8").read() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/partial")
    # apt of this machine, with its settings for the way out, over the lists and packages of the root.
    state = os.path.join(cache, "apt-state")
    shutil.rmtree(state, ignore_errors=True)
    os.makedirs(state + "/lists/partial")
    with open(state + "/sources.list", "w", encoding="utf-8") as f:
        f.write(open(root + "/etc/apt/sources.list", encoding="utf-8").read())
    apt = ["apt-get", "-q", "-y", "-o", "Dir::State::status=" + root + "/var/lib/dpkg/status", "-o", "Dir::State::lists=" + state + "/lists",
           "-o", "Dir::Etc::sourcelist=" + state + "/sources.list", "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::Etc::preferencesparts=-",
           "-o", "Dir::Cache::archives=" + folder, "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
           "-o", "APT::Sandbox::User=root", "-o", "DPkg::Post-Invoke::=true"]
    done = run([*apt, "update"])
    if done.returncode == 0:
        done = run([*apt, "install", "--no-install-recommends", "--download-only", *debs])
    if done.returncode or not glob.glob(folder + "/*.deb"):
        raise Skip(f"apt could not fetch what ava depends on: {done.stdout.strip().rsplit(chr(10), 1)[-1][:200]}")
    with open(told, "w", encoding="utf-8") as f:
        f.write(wanted)
    return folder


def inside(root, over, given, argv, seconds=600):
    """Run argv in an overlay of the root; `given` is its /in, `over` an empty folder to mount it on."""
    os.makedirs(over, exist_ok=True)
    return run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc", "sh", "-c", IN_ROOT, "sh",
                root, over, given, *argv], seconds)
