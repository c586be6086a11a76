"""A PostgreSQL of one's own: a primary, its standby, and pgbouncer before either.

The servers are those of Debian's packages. They run as `nobody` where this runs as root, since
initdb refuses root. fsync is on: what is lost at a kill is what the tests are about. A process dies
with the test that started it, unless it was started from another thread than the main one."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

USER = "nobody"
CONF = """listen_addresses = '{host}'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 60
shared_buffers = 16MB
wal_level = replica
hot_standby = on
max_wal_senders = 4
wal_keep_size = 64MB
log_min_messages = warning
ssl = {ssl}
"""
HBA = """local all all trust
local replication all trust
host all all {net} trust
"""
BOUNCER = """[databases]
* = host={folder} port={port}
[pgbouncer]
listen_addr = {host}
listen_port = {listen}
unix_socket_dir =
pool_mode = transaction
auth_type = trust
auth_file = {users}
admin_users = ava
default_pool_size = 20
logfile = {log}
pidfile = {pid}
client_tls_sslmode = {tls}
"""


class Missing(Exception):
    """A program that the tests need and that is not here."""


def binaries():
    """The folder of AVA_POSTGRES_BIN, else of the newest server that is installed."""
    if own := os.environ.get("AVA_POSTGRES_BIN"):
        return own
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: int(p.split("/")[4]))
    if not found or not shutil.which("psql"):
        raise Missing("the server of PostgreSQL is not installed (Debian: postgresql)")
    return os.path.dirname(found[-1])


def gone(pid):
    """Nothing of it runs, though nobody may have reaped it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def send(pid, number):
    """A signal to what may have ended by itself."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def until(seconds, question, what):
    """The first true answer; asks again and again, and is loud when time is up."""
    end = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return answer


def unprivileged():
    root = os.geteuid() == 0
    return ["setpriv", "--pdeathsig", "KILL"] + (
        [f"--reuid={USER}", "--regid=nogroup", "--clear-groups"] if root else [])


def folder_of_its_own(path):
    os.mkdir(path, 0o700)
    if os.geteuid() == 0:
        shutil.chown(path, USER, "nogroup")
    return path


def certificate(folder, inside=()):
    """server.crt and server.key, as who owns the folder: a server takes no other's key."""
    subprocess.run([*inside, *unprivileged(), "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=cluster", "-keyout",
                    f"{folder}/server.key", "-out", f"{folder}/server.crt"], cwd=folder, check=True, capture_output=True)


class Server:
    """One postmaster. `inside`: the command that runs it in its network; `tls`: it has a certificate; `room`: its data
    is on a disk of its own with so much room ("150m"), which nobody else sees."""

    def __init__(self, top, name, host, port, inside=(), tls=False, room=None):
        self.bin, self.name, self.host, self.port = binaries(), name, host, port
        self.inside, self.tls = list(inside), tls
        self.folder = folder_of_its_own(os.path.join(top, name))
        self.data, self.log = os.path.join(self.folder, "data"), os.path.join(self.folder, "log")
        self.process, self.disk, self.holder = None, [], None
        if room:
            self.make_disk(room)

    def make_disk(self, room):
        folder_of_its_own(self.data)
        owner = os.stat(self.data)
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o "$1" tmpfs "$2" && echo made && exec cat', "sh",
             f"size={room},mode=700,uid={owner.st_uid},gid={owner.st_gid}", self.data],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.holder.stdout.readline() != "made\n":
            raise Missing("a disk of its own is not allowed here")
        self.disk = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]

    def fill(self, full):
        """Nothing more fits on its disk; or all that filled it goes."""
        command = "dd if=/dev/zero of=full bs=64k" if full else "rm -f full"
        subprocess.run([*self.disk, "sh", "-c", f"cd {self.data} && {command}"], check=False, capture_output=True)

    def tool(self, program, *words):
        """A program of the server's, as its user."""
        done = subprocess.run([*self.disk, *unprivileged(), os.path.join(self.bin, program), *words], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout

    def create(self):
        self.tool("initdb", "-D", self.data, "-U", "ava", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        if self.tls:
            certificate(self.data, self.disk)
        self.configure()
        self.start()
        self.sql("create database ava", "postgres")

    def configure(self):
        net = "10.77.0.0/24" if self.inside else "127.0.0.1/32"
        conf = CONF.format(host=self.host, port=self.port, folder=self.folder, ssl="on" if self.tls else "off")
        for name, text in (("postgresql.conf", conf), ("pg_hba.conf", HBA.format(net=net))):
            subprocess.run([*self.disk, "tee", os.path.join(self.data, name)], input=text, text=True, check=True,
                           stdout=subprocess.DEVNULL)

    def copy(self, top, name, port):
        """A standby that streams from this one, started."""
        other = Server(top, name, self.host, port, self.inside, self.tls)
        self.tool("pg_basebackup", "-h", self.folder, "-p", str(self.port), "-U", "ava", "-D", other.data, "-R", "-c",
                  "fast", "--no-sync")
        other.configure()
        other.start()
        until(20, lambda: self.sql("select count(*) from pg_stat_replication where state='streaming'") == "1",
              "the standby streams")
        return other

    def start(self):
        with open(self.log, "a", encoding="utf-8") as out:
            self.process = subprocess.Popen(
                [*self.disk, *self.inside, *unprivileged(), os.path.join(self.bin, "postgres"), "-D", self.data], cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        until(60, self.answers, f"{self.name} answers")

    def answers(self):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                raise AssertionError(f"{self.name} did not start: {f.read()[-2000:]}")
        return self.psql("select 1", "postgres").returncode == 0

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def kill(self):
        """kill -9 of the postmaster. What it started ends by itself, but for what is stopped: that is killed too."""
        children = self.children()
        self.process.kill()
        self.process.wait()
        for pid in children:
            send(pid, signal.SIGCONT)
        try:
            until(5, lambda: all(map(gone, children)), "the backends end")
        except AssertionError:
            for pid in children:
                send(pid, signal.SIGKILL)
            until(5, lambda: all(map(gone, children)), "killed backends end")

    def lose(self):
        """As a machine that is gone for good: a stopped walsender sends nothing more, not even at its end."""
        children = self.children()
        self.process.kill()
        for pid in children:
            send(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.holder:
            self.holder.stdin.close()
        if self.process is None or self.process.poll() is not None:
            return
        for pid in self.children():
            send(pid, signal.SIGCONT)
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def session(self, *texts):
        """A connection that has said so much, until its input is closed; None: the server takes no more."""
        psql = subprocess.Popen(["psql", "-XAtq", "-h", self.folder, "-p", str(self.port), "-U", "ava", "-d", "ava"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            psql.stdin.write("".join(f"{t};\n" for t in (*texts, "select 'said'")))
            psql.stdin.flush()
        except BrokenPipeError:
            pass
        for line in psql.stdout:
            if line == "said\n":
                return psql
        psql.wait()
        return None

    def promote(self):
        self.sql("select pg_promote(true, 30)", "postgres")

    def walsenders(self):
        return [int(pid) for pid in self.sql("select pid from pg_stat_replication").split()]

    def client(self, database):
        return ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "ava", "-d", database]

    def psql(self, text, database="ava"):
        return subprocess.run([*self.client(database), "-c", text], capture_output=True, text=True, check=False,
                              timeout=60)

    def sql(self, text, database="ava"):
        done = self.psql(text, database)
        assert done.returncode == 0, f"{self.name}: {text[:200]}: {done.stderr}"
        return done.stdout.strip()

    def rows(self, query):
        """The rows of a query, each a dict; bytea comes as hex behind \\x."""
        return json.loads(self.sql(f"select coalesce(json_agg(q), '[]') from ({query}) q"))


def url(*servers):
    """One conninfo of one server, or of those of which one is the primary."""
    tls = "require" if servers[0].tls else "disable"
    many = " target_session_attrs=read-write" if len(servers) > 1 else ""
    return (f"hostaddr={','.join(s.host for s in servers)} port={','.join(str(s.port) for s in servers)} user=ava "
            f"dbname=ava sslmode={tls}{many}")


class Bouncer:
    """pgbouncer in transaction mode before a server; a door of its own with the server's host and TLS."""

    def __init__(self, top, server, port):
        self.program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/sbin:/bin")
        if self.program is None:
            raise Missing("pgbouncer is not installed (Debian: pgbouncer)")
        self.host, self.port, self.tls = server.host, port, server.tls
        self.server = server
        self.folder = folder_of_its_own(os.path.join(top, "bouncer"))
        self.process = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        text = BOUNCER.format(folder=self.server.folder, port=self.server.port, host=self.host, listen=self.port,
                              users=self.path("users"), log=self.path("log"), pid=self.path("pid"),
                              tls="require" if self.tls else "disable")
        if self.tls:
            certificate(self.folder)
            text += f"client_tls_key_file = {self.path('server.key')}\nclient_tls_cert_file = {self.path('server.crt')}\n"
        for name, content in (("ini", text), ("users", '"ava" ""\n')):
            with open(self.path(name), "w", encoding="ascii") as f:
                f.write(content)
            os.chmod(self.path(name), 0o644)
        self.process = subprocess.Popen([*self.server.inside, *unprivileged(), self.program, "-q", self.path("ini")],
                                        cwd=self.folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(20, lambda: self.psql("select 1").returncode == 0, "pgbouncer answers")

    def psql(self, *texts, database="ava"):
        """Through its door, each text a statement of its own."""
        words = [word for text in texts for word in ("-c", text)]
        return subprocess.run([*self.server.inside, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1",
                               f"{url(self)} dbname={database}", *words],
                              capture_output=True, text=True, check=False, timeout=60)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
