"""A network of its own: a bridge in a namespace where the database is, and one namespace a machine
with a cable to it. Nothing of it is seen from outside, and all of it goes with the processes that hold
it: no name is left behind, whatever ends the test.

A machine reaches its model by a relay on its own loopback, which the cable has no part in: cut off from
the database it could still start calls, which is what must not happen. By the relay's address the model
knows which machine asks."""

import asyncio
import ctypes
import os
import random
import socket
import subprocess
import threading

HUB, BITS = "10.77.0.1", 24
CLONE_NEWNET = 0x40000000


class Network:
    """The bridge. `why`: a sentence, where namespaces are not allowed; then there is nothing but the loopback."""

    def __init__(self):
        self.hub, self.why, self.holders = None, "", []
        try:
            self.hub = self.hold("hub")
            self.inside(self.hub, "ip link add br0 type bridge", f"ip addr add {HUB}/{BITS} dev br0", "ip link set br0 up",
                        "ip link set lo up")
        except (OSError, subprocess.CalledProcessError) as e:
            self.why = f"network namespaces are not allowed here ({e})"
            self.stop()

    def hold(self, name):
        """A process in a network and a host name of its own, for as long as this one holds its input."""
        holder = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", 'hostname "$1" && echo "$1" && exec cat', "sh", name],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.holders.append(holder)
        if holder.stdout.readline().strip() != name.encode():
            raise OSError("unshare was refused")
        return holder.pid

    def inside(self, pid, *commands):
        for command in commands:
            subprocess.run([*enter(pid), *command.split()], check=True, capture_output=True)

    def machine(self, number):
        """The holder of machine 1, 2, …, with its cable."""
        pid = self.hold(f"m{number}")
        self.inside(self.hub, f"ip link add name p{number} type veth peer name c{number} netns {pid}",
                    f"ip link set p{number} master br0 up")
        self.inside(pid, "ip link set lo up", f"ip addr add 10.77.0.{10 + number}/{BITS} dev c{number}",
                    f"ip link set c{number} up")
        return pid

    def cable(self, number, up):
        self.inside(self.hub, f"ip link set p{number} {'up' if up else 'down'}")

    def one_way(self, number, holder, way):
        """Only one direction gets through, by that machine's view "in" or "out"; "both": all is well again."""
        for where, far in ((holder, HUB), (self.hub, f"10.77.0.{10 + number}")):
            subprocess.run([*enter(where), "ip", "route", "del", "blackhole", f"{far}/32"], check=False, capture_output=True)
        if way == "in":
            self.inside(holder, f"ip route add blackhole {HUB}/32")
        elif way == "out":
            self.inside(self.hub, f"ip route add blackhole 10.77.0.{10 + number}/32")

    def stop(self):
        for holder in self.holders:
            holder.stdin.close()
            holder.stdout.close()
            holder.wait()
        self.holders, self.hub = [], None


def enter(pid):
    """The command that runs another one in the network of `pid`; the process stays the same."""
    return ["nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts", "--"]


def in_network(pid, make):
    """Answers with `make()`, called in the network of `pid` (None: ours): a socket stays where it was made."""
    made = []

    def enter_and_make():
        try:
            if pid is not None:
                with open(f"/proc/{pid}/ns/net", "rb") as f:
                    if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
            made.append(make())
        except OSError as e:
            made.append(e)

    thread = threading.Thread(target=enter_and_make)  # a network is a thread's own
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class Relays:
    """Bytes from the loopbacks of machines to one port of ours, in a thread."""

    def __init__(self, target):
        self.target = target
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def add(self, pid, port, source, host="127.0.0.1"):
        """The port that it listens on; `source` is who the target sees."""
        s = in_network(pid, lambda: socket.create_server((host, port), backlog=256))

        async def serve():
            await asyncio.start_server(lambda r, w: self.relay(r, w, source), sock=s)

        asyncio.run_coroutine_threadsafe(serve(), self.loop).result()
        return s.getsockname()[1]

    async def relay(self, reader, writer, source):
        try:
            far_reader, far_writer = await self.connect(source)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self.pour(reader, far_writer), self.pour(far_reader, writer))

    async def connect(self, source):
        return await asyncio.open_connection("127.0.0.1", self.target, local_addr=(source, 0))

    async def pour(self, reader, writer):
        """One direction to its end. What breaks on one side breaks on the other."""
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()

    def stop(self):
        async def end():
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Wire(Relays):
    """A long and bad line to a server: all that goes through comes late, some of it very late, and now and then the
    connection is reset in the middle of what is said. It is a door with the server's host and TLS."""

    DELAY, STALL, RESET = 0.1, 0.02, 0.03  # seconds of each piece one way; chances of each piece

    def __init__(self, hub, server, port):
        super().__init__(server.port)
        self.hub, self.server, self.host, self.tls = hub, server, server.host, server.tls
        self.resets, self.rng = 0, random.Random()
        self.bad = False  # until the world is made
        self.port = self.add(hub, port, "", server.host)

    async def connect(self, source):
        far = in_network(self.hub, lambda: socket.create_connection((self.server.host, self.server.port)))
        return await asyncio.open_connection(sock=far)

    async def pour(self, reader, writer):
        try:
            while data := await reader.read(65536):
                await asyncio.sleep(self.DELAY + (self.rng.uniform(0, 3) if self.bad and self.rng.random() < self.STALL else 0))
                if self.bad and self.rng.random() < self.RESET:
                    self.resets += 1
                    writer.write(data[:self.rng.randrange(len(data))])
                    raise OSError("reset")
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def alone_in(pid):
    """Is that another network than ours?"""
    return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
