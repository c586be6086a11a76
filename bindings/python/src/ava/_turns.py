"""One runtime of the library, used by many threads and by asyncio's loops.

The library wants one thread at a time: `use` is the lock around each call. It is held for a call, never for
a wait. Who waits sleeps on the runtime's descriptor, for as long as the library says, then lets it
go on; that calls the callbacks, which mark what others wait for. In one thread after another: of
those who block, one (the leader) sleeps on the descriptor and the others on a condition; a loop of
asyncio sleeps on it by add_reader. No thread is made, and nothing looks again and again.

A call by a thread that does not sleep may use up what the descriptor had to tell, or set a timer: it
calls due callbacks itself and wakes the sleepers. A thread that lets the runtime go on wakes the
others when a callback was called, and when it stops sleeping, since only it may have known the timer.

A handler that raises (^C does) may come within a callback, too, where nothing can be raised: the
callback's watch makes up for it (`lost`), and the call that called it raises when it has ended.

What is dropped without being closed is closed by the next call: finalizers run at any place, also
within a call. A signal handler that comes within a call is refused with an error; within a wait it
may call what it likes. A forked child has no runtime: its calls are refused, and it frees nothing."""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import threading
import time
import warnings
import weakref
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ava._errors import ClosedError, Error, checked, error_of, ffi, lib, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SLEEP_S = 3600  # at most at once: poll takes 24 days
PATIENCE_S = 5  # at the interpreter's end, for a call of another thread


class Waiter:
    """Something that a thread or a task waits for."""

    def __init__(self) -> None:
        self.done = False
        self.failed: Error | None = None
        self.fired: Callable[[], None] | None = None  # of a task: called when done

    def fire(self) -> None:
        self.done = True
        if self.fired:
            self.fired()


class Watch:
    """The library's watch. It knows nothing of those who read it, so that nothing of theirs is kept
    alive by a handle in C."""

    def __init__(self, run: bytes | None, session: bytes | None) -> None:
        self.run, self.session = run, session
        self.c: Any = ffi.NULL
        self.handle = ffi.new_handle(self)

    def event(self, event: Any) -> None:
        """An event; called within Turns.process."""

    def ended(self, run: str) -> None:
        """A run has ended; called within Turns.process."""

    def lost(self, where: dict[str, Any]) -> None:
        """A callback did not come to its end; its arguments."""

    def stop(self) -> None:
        """Within Turns.use, or a callback."""
        lib.ava_unwatch(self.c)
        self.c = ffi.NULL


class RunWaiter(Waiter):
    """One who waits for runs: for all of them, or for any."""

    def __init__(self, runs: Iterable[str], any_of: bool) -> None:
        super().__init__()
        self.missing, self.any_of = set(runs), any_of
        self.over: set[str] = set()

    def end(self, run: str) -> None:
        self.missing.discard(run)
        self.over.add(run)
        if not self.missing or self.any_of:
            self.fire()


class Ends(Watch):
    """The ends of all runs, while anybody waits for one."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.missing: dict[str, set[RunWaiter]] = {}

    def ended(self, run: str) -> None:
        for waiter in list(self.missing.get(run, ())):
            waiter.end(run)
        self.missing.pop(run, None)

    def lost(self, where: dict[str, Any]) -> None:
        self.ended(text(where["run"]))

    def join(self, waiter: RunWaiter) -> None:
        for run in waiter.missing:
            self.missing.setdefault(run, set()).add(waiter)

    def leave(self, waiter: RunWaiter) -> None:
        for run in waiter.missing | waiter.over:
            waiters = self.missing.get(run, set())
            waiters.discard(waiter)
            if not waiters:
                self.missing.pop(run, None)


class Driver:
    """A loop of asyncio that sleeps on a runtime while tasks of it wait."""

    def __init__(self, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self.turns, self.loop = turns, loop
        self.waiters: set[Waiter] = set()
        self.timer: asyncio.Handle | None = None
        self.woken = False

    def enter(self, waiter: Waiter) -> None:
        self.waiters.add(waiter)
        if len(self.waiters) == 1:
            self.loop.add_reader(self.turns.fd, self.turn)
        self.wake()

    def leave(self, waiter: Waiter) -> None:
        self.waiters.discard(waiter)
        if not self.waiters:
            self.loop.remove_reader(self.turns.fd)
            if self.timer:
                self.timer.cancel()
            self.turns.drivers.pop(self.loop, None)
            self.turns.wake()

    def wake(self) -> None:
        """From any thread: let the loop have a turn."""
        if self.woken:
            return
        self.woken = True
        try:
            self.loop.call_soon_threadsafe(self.turn)
        except RuntimeError:  # the loop was closed with tasks that wait
            self.turns.drivers.pop(self.loop, None)

    def turn(self) -> None:
        self.woken = False
        if self.timer:
            self.timer.cancel()
            self.timer = None
        if not self.waiters:
            return
        try:
            called, timeout_ms = self.turns.process()
        except Error as problem:
            for waiter in list(self.waiters):
                waiter.failed = problem
                waiter.fire()
            return
        if called:
            self.turns.wake(self)
        if timeout_ms >= 0:
            self.timer = self.loop.call_later(timeout_ms / 1000, self.turn)


class Turns:
    def __init__(self, rt: Any, keep: Any) -> None:
        self.rt, self.keep = rt, keep
        self.pid = os.getpid()
        # A handler that comes between taking the lock and the call takes it once more.
        self.lock = threading.RLock()
        self.owner = 0  # the thread that is in a call
        self.fd = os.dup(lib.ava_runtime_fd(rt))
        self.hear, self.bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.meeting = threading.Condition()
        self.leading = False
        self.drivers: dict[asyncio.AbstractEventLoop, Driver] = {}
        self.watches: set[Watch] = set()
        self.dropped: deque[Watch] = deque()
        self.ends = Ends()
        OPEN.add(self)

    # --- calls

    @contextmanager
    def use(self, wake: bool = True) -> Iterator[tuple[Any, Any]]:
        """The runtime and a fresh error, for one call and for reading its answer."""
        if self.pid != os.getpid():
            raise ClosedError(lib.AVA_EINVAL, "a runtime belongs to the process that opened it: "
                                              "open one in this process")
        me = threading.get_ident()
        if self.owner == me:
            raise Error(lib.AVA_EBUSY, "the runtime is within a call of this thread: a signal handler "
                                       "or a log function that came meanwhile must not use it")
        try:
            with self.lock:
                try:
                    self.owner = me  # within: an exception may come at any place
                    if not self.rt:
                        raise ClosedError(lib.AVA_EINVAL, "the runtime is closed")
                    yield self.rt, ffi.new("struct ava_error *")
                finally:
                    try:
                        if self.rt:
                            self.settle()
                    finally:
                        self.owner = 0
            raise_late(me)
        finally:
            if wake:
                self.wake()

    def settle(self) -> None:
        """At a call's end: close what was dropped, and call the callbacks that it made due. What fails here
        fails again for those who wait."""
        while self.dropped:
            watch = self.dropped.popleft()
            watch.stop()
            self.watches.discard(watch)
        if self.watches and lib.ava_runtime_timeout(self.rt) == 0:
            lib.ava_runtime_process(self.rt, 0, ffi.NULL)

    def watch(self, watch: Watch, after: int, ends: bool) -> None:
        """Let a watch begin: all events of its query, or only the ends of runs."""
        with self.use() as (rt, err):
            if watch.c:
                return
            query = ffi.new("struct ava_events_query *", {"after": after})
            keep = [ffi.new("char[]", word) if word is not None else ffi.NULL
                    for word in (watch.run, watch.session)]
            query.run, query.session = keep
            calls = ffi.new("struct ava_callbacks *")
            if ends:
                calls.complete = lib.ava_python_complete
            else:
                calls.event = lib.ava_python_event
            c = ffi.new("struct ava_watch **")
            self.watches.add(watch)  # first: what C has a handle of must live
            rv = lib.ava_watch(rt, query, calls, watch.handle, c, err)
            if rv < 0:
                self.watches.discard(watch)
            checked(rv, err)
            watch.c = c[0]

    def drop(self, watch: Watch) -> None:
        """From anywhere, a finalizer too: the next call closes the watch."""
        self.dropped.append(watch)

    # --- waiting

    def process(self) -> tuple[int, int]:
        """Let the runtime go on: how many callbacks were called, and how long it may sleep (ms)."""
        with self.use(wake=False) as (rt, err):
            called = checked(lib.ava_runtime_process(rt, 0, err), err)
            return called, int(lib.ava_runtime_timeout(rt))

    def wake(self, but: Driver | None = None) -> None:
        if self.leading:
            try:
                os.write(self.bell, b"!")
            except BlockingIOError:
                pass  # it rings
        for driver in list(self.drivers.values()):
            if driver is not but:
                driver.wake()
        with self.meeting:
            self.meeting.notify_all()

    def sleep(self, left_s: float | None) -> None:
        """As the leader: until something may have come."""
        called, timeout_ms = self.process()
        if called:
            self.wake()
            return
        if left_s is not None and (timeout_ms < 0 or timeout_ms > left_s * 1000):
            timeout_ms = int(left_s * 1000) + 1
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        poll.register(self.hear, select.POLLIN)
        poll.poll(timeout_ms if timeout_ms >= 0 else None)
        try:
            os.read(self.hear, 4096)
        except BlockingIOError:
            pass  # it did not ring

    def wait(self, waiter: Waiter, timeout_s: float | None) -> bool:
        """Block until the waiter is done; False: the time is over."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not waiter.done:
            left = None if end is None else min(end - time.monotonic(), SLEEP_S)
            if left is not None and left <= 0:
                return False
            lead = False
            try:
                with self.meeting:
                    if self.leading:
                        if not waiter.done:
                            self.meeting.wait(left)
                        continue
                    self.leading = lead = True
                self.sleep(left)
            finally:
                if lead:
                    self.leading = False
                    self.wake()
        return True

    async def wait_async(self, waiter: Waiter) -> None:
        """Let other tasks run until the waiter is done."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def fired() -> None:
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:  # the loop was closed
                pass

        waiter.fired = fired
        if waiter.done:
            return
        driver = self.drivers.setdefault(loop, Driver(self, loop))
        driver.enter(waiter)
        try:
            await done
        finally:
            driver.leave(waiter)
        if waiter.failed:
            raise waiter.failed

    # --- the end

    def close(self, patience_s: float = -1) -> None:
        if self.pid != os.getpid() or not self.rt:
            return
        if self.owner == threading.get_ident():
            raise Error(lib.AVA_EBUSY, "the runtime is within a call of this thread: it cannot be closed now")
        if not self.lock.acquire(timeout=patience_s):
            return
        try:
            rt, self.rt = self.rt, None
            for watch in self.watches:
                watch.c = ffi.NULL  # freed with the runtime
            self.watches.clear()
            self.dropped.clear()
            if rt:
                lib.ava_runtime_free(rt)
        finally:
            self.lock.release()
        self.wake()

    def __del__(self) -> None:
        if self.pid != os.getpid():
            return
        if self.rt:
            warnings.warn("a runtime was not closed", ResourceWarning, stacklevel=2)
            self.close(0)
        for fd in (self.fd, self.hear, self.bell):
            os.close(fd)


OPEN: weakref.WeakSet[Turns] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    for turns in list(OPEN):
        turns.close(PATIENCE_S)


# --- callbacks, within Turns.process or a call's end

LATE: dict[int, BaseException] = {}  # of a thread: what came within a callback


def late(_: Any, value: BaseException, trace: Any) -> None:
    LATE[threading.get_ident()] = value
    if trace and "event" in trace.tb_frame.f_locals:
        ffi.from_handle(trace.tb_frame.f_locals["user"]).lost(trace.tb_frame.f_locals)


def raise_late(thread: int) -> None:
    if LATE and (problem := LATE.pop(thread, None)):
        raise problem


@ffi.def_extern(onerror=late)
def ava_python_event(event: Any, user: Any) -> None:
    ffi.from_handle(user).event(event)


@ffi.def_extern(onerror=late)
def ava_python_complete(run: Any, status: int, summary: Any, event: Any, user: Any) -> None:
    ffi.from_handle(user).ended(text(run))


@ffi.def_extern(onerror=late)
def ava_python_log(line: Any, user: Any) -> None:
    ffi.from_handle(user)(text(line))


def opened(call: Callable[[Any, Any], int], keep: Any = None) -> Turns:
    """A runtime that `call` opens into a pointer; `keep` lives as long."""
    rt, err = ffi.new("struct ava_runtime **"), ffi.new("struct ava_error *")
    rv = call(rt, err)
    turns = Turns(rt[0], keep) if rv >= 0 else None
    try:
        raise_late(threading.get_ident())
    except BaseException:
        if turns:
            turns.close()
        raise
    if not turns:
        raise error_of(rv, err)
    return turns
