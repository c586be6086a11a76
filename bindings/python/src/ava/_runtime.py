"""The calls of ava.h as objects: a Runtime, its Runs, Proposals and Sessions, and Streams of what happens.
All of them are names and a reference to the runtime; nothing is kept of a run but its id."""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ava import _shapes as shapes
from ava._errors import InvalidError, TimeoutError, checked, ffi, lib, text
from ava._shapes import (Event, Group, GroupOptions, Item, Replay, ResumeOptions, Result, RunStatus,
                         SessionStatus, SpawnOptions, utf8)
from ava._turns import RunWaiter, Turns, Waiter, Watch, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Unpack

T = TypeVar("T")
QUEUE_MOST = 512  # events that wait for a slow reader; then the stream pauses


class Feed(Watch):
    """Events that came and were not read yet. A full one stops its watch, and goes on behind the last one
    read when all have been."""

    def __init__(self, run: bytes | None, session: bytes | None, after: int) -> None:
        super().__init__(run, session)
        self.queue: deque[Event] = deque()
        self.after = after  # the last one read
        self.over = False
        self.waiters: set[Waiter] = set()

    def event(self, event: Any) -> None:
        self.queue.append(shapes.shape(Event, event))
        if self.run is not None and self.queue[-1].type == "SubagentComplete":
            self.over = True
        if self.over or len(self.queue) >= QUEUE_MOST:
            self.stop()
        self.fire()

    def lost(self, where: dict[str, Any]) -> None:
        """It may or may not be in the queue: the next watch begins behind what is."""
        if not self.queue and self.after == shapes.NOW:
            self.after = where["event"].lsn - 1
        self.stop()
        self.fire()

    def fire(self) -> None:
        for waiter in list(self.waiters):
            waiter.fire()


class Stream(Generic[T]):
    """What happens, in order and each once, for `for` and for `async for`. That of a run ends with
    the run. It is for one reader. Leaving the loop is enough; close() or `with` ends it at once."""

    def __init__(self, turns: Turns, run: str | None, session: str | None, after: int,
                 make: Callable[[Turns, Event], T | None]) -> None:
        keep: list[Any] = []
        words = [ffi.string(utf8(w, keep)) if w is not None else None for w in (run, session)]
        self._turns, self._make = turns, make
        self._feed = Feed(words[0], words[1], after)
        turns.watch(self._feed, after, ends=False)

    def _next(self) -> T | None:
        """The next one that came; None: none has."""
        feed = self._feed
        while feed.queue:
            made = self._make(self._turns, feed.queue[0])
            feed.after = feed.queue.popleft().lsn
            if made is not None:
                return made
        if not feed.c and not feed.over:
            self._turns.watch(feed, feed.after, ends=False)
        return None

    def _waiter(self) -> Waiter:
        waiter = Waiter()
        self._feed.waiters.add(waiter)
        if self._feed.queue or self._feed.over:  # came before the waiter was there
            waiter.fire()
        return waiter

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        while (got := self._next()) is None:
            if self._feed.over and not self._feed.queue:
                raise StopIteration
            waiter = self._waiter()
            try:
                self._turns.wait(waiter, None)
            finally:
                self._feed.waiters.discard(waiter)
        return got

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        while (got := self._next()) is None:
            if self._feed.over and not self._feed.queue:
                raise StopAsyncIteration
            waiter = self._waiter()
            try:
                await self._turns.wait_async(waiter)
            finally:
                self._feed.waiters.discard(waiter)
        return got

    def close(self) -> None:
        self._feed.over = True
        self._feed.queue.clear()
        self._turns.drop(self._feed)
        if self._turns.rt:
            with self._turns.use():
                pass  # its end closes what was dropped

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if feed := getattr(self, "_feed", None):
            self._turns.drop(feed)


def as_event(_: Turns, event: Event) -> Event:
    return event


def as_item(turns: Turns, event: Event) -> Item | None:
    line, item = event.json.encode("utf-8", "surrogateescape"), ffi.new("struct ava_line *")
    bytes_ = ffi.from_buffer(line)
    with turns.use(wake=False) as (rt, err):
        c = ffi.new("struct ava_event *", {"json": bytes_, "len": len(line)})
        if checked(lib.ava_item(rt, c, item, err), err) == 0:
            return None
        made: Item = json.loads(ffi.buffer(item.text, item.len)[:])
        return made


class Named:
    """Something of a runtime that has an id."""

    def __init__(self, turns: Turns, id: str) -> None:
        self._turns, self.id = turns, id

    def _call(self, name: str, *words: Any, give: Callable[[Any], T] | None = None, out: str = "") -> Any:
        """ava_NAME(rt, id, words…, out, err). A word may be a str, None or what C takes."""
        keep: list[Any] = []
        args = [utf8(w, keep) if isinstance(w, str) else ffi.NULL if w is None else w
                for w in (self.id, *words)]
        if out:
            args.append(ffi.new(out))
        with self._turns.use() as (rt, err):
            rv = checked(getattr(lib, "ava_" + name)(rt, *args, err), err)
            return give(args[-1]) if give else rv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Named) and \
            (self._turns, self.id) == (other._turns, other.id)

    def __hash__(self) -> int:
        return hash(self.id)


class Run(Named):
    """A run: `wait` blocks until it has ended, `await run.result()` lets other tasks run."""

    def status(self) -> RunStatus:
        now: RunStatus = self._call("status", out="struct ava_run *",
                                    give=lambda c: shapes.shape(RunStatus, c))
        return now

    def done(self) -> bool:
        return bool(self._call("is_done"))

    def _result(self) -> Result:
        result: Result = self._call("result", out="struct ava_result *",
                                    give=lambda c: shapes.shape(Result, c))
        return result

    def wait(self, timeout: float | None = None) -> Result:
        """Its result; TimeoutError after so many seconds, which does not stop it."""
        if not wait_for(self._turns, [self.id], False, timeout):
            raise TimeoutError(lib.AVA_ETIMEOUT, f"{self.id} has not ended within {timeout:g} s; it goes on")
        return self._result()

    async def result(self) -> Result:
        await wait_for_async(self._turns, [self.id], False)
        return self._result()

    def events(self, after: int = 0) -> Stream[Event]:
        """Its events from the beginning, or behind the number `after`; later ones as they come."""
        return Stream(self._turns, self.id, None, after, as_event)

    def items(self, after: int = 0) -> Stream[Item]:
        """What a person sees of these events."""
        return Stream(self._turns, self.id, None, after, as_item)

    def cancel(self) -> None:
        """Nothing of it starts after this; an ended run stays as it is."""
        self._call("cancel")

    def pause(self, until: str | None = None) -> None:
        """It stands still from the end of its turn on, until that time ("2h", "18:40") or `unpause`."""
        self._call("pause", until)

    def unpause(self) -> None:
        self._call("unpause")

    def steer(self, words: str, call: str | None = None, request_id: str | None = None) -> None:
        """Say something to it, or answer its question."""
        self._call("steer_once", request_id, words, call)

    def checkpoint(self, name: str) -> None:
        self._call("checkpoint", name)

    def resume(self, **options: Unpack[ResumeOptions]) -> Proposal:
        """A quote of a new run that goes on where this one ended."""
        keep: list[Any] = []
        given = {"from" if k == "from_call" else k: v for k, v in options.items()}
        more = shapes.fill(ffi.new("struct ava_resume *"), given, keep)
        quote: Proposal = self._call("resume", more, out="struct ava_proposal *",
                                     give=lambda c: proposal(self._turns, c))
        return quote

    def replay(self, lenient: bool = False) -> Replay:
        """Play it again from its record: no network, no tool, nothing is written."""
        def give(c: Any) -> Replay:
            return shapes.shape(Replay, c,
                                differences=shapes.rows(shapes.Difference, c.differences, c.ndifferences))
        replay: Replay = self._call("replay", int(lenient), out="struct ava_replay *", give=give)
        return replay


@dataclass(frozen=True)
class Proposal:
    """A quote: what would run, and what it may cost. Nothing runs before a yes."""
    id: str
    state: shapes.ProposalState
    created_ms: int
    expires_ms: int
    run: Run | None  # of a group the first
    trace: str
    message: str  # the question to a person
    quote: dict[str, Any]
    config: dict[str, Any]
    config_hash: str
    confirmed_hash: str
    changes: str
    replaces: str
    replaced_by: str
    group_id: str
    _turns: Turns

    def _named(self) -> Named:
        return Named(self._turns, self.id)

    def confirm(self, words: str = "yes") -> Proposal:
        """Answer in a person's words. Read the state of what comes back."""
        answer: Proposal = self._named()._call("confirm", words, out="struct ava_proposal *",
                                               give=lambda c: proposal(self._turns, c))
        return answer

    def reject(self, reason: str | None = None) -> Proposal:
        answer: Proposal = self._named()._call("reject", reason, out="struct ava_proposal *",
                                               give=lambda c: proposal(self._turns, c))
        return answer

    def group(self) -> Group:
        """The runs of a quote of several."""
        def give(c: Any) -> Group:
            return shapes.shape(Group, c, runs=shapes.rows(RunStatus, c.runs, c.nruns))
        group: Group = Named(self._turns, self.group_id)._call("group", out="struct ava_group *", give=give)
        return group


def proposal(turns: Turns, c: Any) -> Proposal:
    run = text(c.run)
    return shapes.shape(Proposal, c, _turns=turns, run=Run(turns, run) if run else None, group_id=text(c.group))


class Session(Named):
    """A conversation with Ava."""

    def say(self, words: str, request_id: str | None = None) -> str:
        """The message's id in the conversation, when it is on disk; the answer comes as an Item."""
        entry = ffi.new("char[24]")
        self._call("say_once", request_id, words, entry)
        return text(entry)

    def items(self, after: int = 0) -> Stream[Item]:
        return Stream(self._turns, None, self.id, after, as_item)

    def events(self, after: int = 0) -> Stream[Event]:
        return Stream(self._turns, None, self.id, after, as_event)

    def entries(self, after: str | None = None) -> list[dict[str, Any]]:
        """The lines of its file (doc/SESSIONS.md) behind the entry `after`."""
        keep: list[Any] = []
        lines, n = ffi.new("struct ava_line **"), ffi.new("size_t *")
        behind = utf8(after, keep) if after is not None else ffi.NULL
        with self._turns.use() as (rt, err):
            checked(lib.ava_session_entries(rt, utf8(self.id, keep), behind, lines, n, err), err)
            return [json.loads(ffi.buffer(lines[0][i].text, lines[0][i].len)[:]) for i in range(n[0])]

    def stop(self) -> None:
        """Stop Ava's turn, not the runs."""
        self._call("session_stop")


# --- waiting for runs

class Waited:
    """A waiter for runs among those who wait for ends, from `with` to its end."""

    def __init__(self, turns: Turns, runs: Sequence[str], any_of: bool) -> None:
        if not runs:
            raise InvalidError(lib.AVA_EINVAL, "a wait is for one run at least")
        self.turns, self.waiter = turns, RunWaiter(runs, any_of)

    def look(self) -> None:
        """Runs that have ended already."""
        for run in list(self.waiter.missing):
            keep: list[Any] = []
            with self.turns.use(wake=False) as (rt, err):
                over = checked(lib.ava_is_done(rt, utf8(run, keep), err), err)
            if over:
                self.waiter.end(run)

    def __enter__(self) -> RunWaiter:
        if len(self.waiter.missing) == 1:
            self.look()  # no watch for what has ended
        if not self.waiter.done:
            try:
                with self.turns.use():
                    self.turns.ends.join(self.waiter)
                self.turns.watch(self.turns.ends, shapes.NOW, ends=True)
                self.look()  # what ended before the watch began
            except BaseException:
                self.__exit__()
                raise
        return self.waiter

    def __exit__(self, *_: object) -> None:
        if not self.turns.rt:
            return
        with self.turns.use():
            self.turns.ends.leave(self.waiter)
            if not self.turns.ends.missing:
                self.turns.drop(self.turns.ends)


def wait_for(turns: Turns, runs: Sequence[str], any_of: bool, timeout_s: float | None) -> set[str]:
    """Those that have ended; none: the time is over."""
    with Waited(turns, runs, any_of) as waiter:
        return waiter.over if turns.wait(waiter, timeout_s) else set()


async def wait_for_async(turns: Turns, runs: Sequence[str], any_of: bool) -> set[str]:
    with Waited(turns, runs, any_of) as waiter:
        await turns.wait_async(waiter)
        return waiter.over


# --- the runtime

class Runtime:
    """The runtime in this process (embed), or the daemon of a data root (open). Any thread may use it,
    and any task of asyncio. `with` or close() ends it."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    # --- runs

    @overload
    def spawn(self, task: str, **options: Unpack[SpawnOptions]) -> Run: ...
    @overload
    def spawn(self, task: Mapping[str, Any]) -> Run: ...

    def spawn(self, task: Any, **options: Any) -> Run:
        """Start a run; its start is on disk. Options as in SpawnOptions: role=, cwd=, model=, …
        UnknownOutcomeError: ask again with the same request_id."""
        keep: list[Any] = []
        spec, id = spawn_of(task, options, keep), ffi.new("struct ava_run_id *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_spawn(rt, spec, id, err), err)
            return Run(self._turns, text(id.text))

    def propose(self, task: str, **options: Unpack[SpawnOptions]) -> Proposal:
        """Quote a run; nothing runs before its yes (Proposal.confirm)."""
        keep: list[Any] = []
        spec, quote = spawn_of(task, dict(options), keep), ffi.new("struct ava_proposal *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_propose(rt, spec, quote, err), err)
            return proposal(self._turns, quote)

    def propose_group(self, runs: Sequence[Mapping[str, Any]], **options: Unpack[GroupOptions]) -> Proposal:
        """Several runs, one quote. Each is a dict of SpawnOptions with its "task"."""
        keep: list[Any] = []
        specs = ffi.new("struct ava_spawn[]", [spawn_of(run, {}, keep)[0] for run in runs])
        group = shapes.fill(ffi.new("struct ava_spawn_group *"), dict(options), keep)
        group.runs, group.nruns = specs, len(runs)
        quote = ffi.new("struct ava_proposal *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_propose_group(rt, group, quote, err), err)
            return proposal(self._turns, quote)

    def run(self, id: str) -> Run:
        """The run of that id; whether there is one is not looked at."""
        return Run(self._turns, id)

    def runs(self, all: bool = False, limit: int = 100) -> list[RunStatus]:
        """The runs, newest first: live ones, or ended ones too."""
        list_, n = ffi.new("struct ava_run **"), ffi.new("size_t *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_runs(rt, all, limit, list_, n, err), err)
            return shapes.rows(RunStatus, list_[0], n[0])

    def proposals(self, all: bool = False) -> list[Proposal]:
        """The quotes, newest first: pending ones, or answered and expired ones too."""
        list_, n = ffi.new("struct ava_proposal **"), ffi.new("size_t *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_proposals(rt, all, list_, n, err), err)
            return [proposal(self._turns, list_[0][i]) for i in range(n[0])]

    def wait(self, runs: Iterable[Run], timeout: float | None = None, any_of: bool = False) -> list[Run]:
        """Wait for all of these runs, or for any: those that have ended. TimeoutError stops none."""
        wanted = list(runs)
        over = wait_for(self._turns, [run.id for run in wanted], any_of, timeout)
        if not over:
            raise TimeoutError(lib.AVA_ETIMEOUT, f"the runs have not ended within {timeout:g} s; they go on")
        return [run for run in wanted if run.id in over]

    def cancel_all(self) -> int:
        n = ffi.new("size_t *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_cancel_all(rt, n, err), err)
            return int(n[0])

    # --- what happens

    def events(self, after: int = shapes.NOW) -> Stream[Event]:
        """The events of all runs and of Ava from now on, or behind the number `after`; 0: all."""
        return Stream(self._turns, None, None, after, as_event)

    def items(self, after: int = shapes.NOW) -> Stream[Item]:
        return Stream(self._turns, None, None, after, as_item)

    # --- conversations

    def new_session(self, cwd: str | os.PathLike[str] | None = None, model: str | None = None) -> Session:
        keep: list[Any] = []
        options = shapes.fill(ffi.new("struct ava_session_options *"), {"cwd": cwd, "model": model}, keep)
        id = ffi.new("struct ava_session_id *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_session_new(rt, options, id, err), err)
            return Session(self._turns, text(id.text))

    def session(self, id: str) -> Session:
        return Session(self._turns, id)

    def sessions(self, limit: int = 100) -> list[SessionStatus]:
        list_, n = ffi.new("struct ava_session **"), ffi.new("size_t *")
        with self._turns.use() as (rt, err):
            checked(lib.ava_sessions(rt, limit, list_, n, err), err)
            return shapes.rows(SessionStatus, list_[0], n[0])

    # --- life

    def process(self) -> None:
        """Let an embedded runtime go on for a moment, in a program that waits for nothing of it."""
        called, _ = self._turns.process()
        if called:
            self._turns.wake()

    def close(self) -> None:
        """Work that was accepted is on disk. Others who wait get a ClosedError; again is allowed."""
        self._turns.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def spawn_of(task: Any, options: dict[str, Any], keep: list[Any]) -> Any:
    given = {**task, **options} if not isinstance(task, str) else {"task": task, **options}
    return shapes.fill(ffi.new("struct ava_spawn *"), given, keep)


def open(root: str | os.PathLike[str] | None = None, *, start: bool = True) -> Runtime:
    """The daemon of a data root (None: $AVA_DATA_ROOT or the user's), started when none serves and `start`
    is set. Its runs go on without us."""
    keep: list[Any] = []
    options = shapes.fill(ffi.new("struct ava_options *"), {"root": root, "no_start": not start}, keep)
    return Runtime(opened(lambda rt, err: lib.ava_runtime_connect(rt, options, err)))


def embed(root: str | os.PathLike[str], *, env: Mapping[str, str] | None = None, process_env: bool = False,
          model: str | None = None, user_id: str | None = None,
          log: Callable[[str], None] | None = None) -> Runtime:
    """The runtime in this process, one at a time; it takes the data root and makes it when missing. `env`
    takes the place of the environment: {"AVA_RUNS_MAX": "20"}; without it and `process_env` the model is
    offline. It works only while something is called, waited for or awaited. `log` gets the lines of
    avad.log and must not use the runtime."""
    keep: list[Any] = []
    given = {"root": root, "process_env": process_env, "model": model,
             "user_id": user_id}
    options = shapes.fill(ffi.new("struct ava_options *"), given, keep)
    if env is not None:
        words = [utf8(f"{name}={value}", keep) for name, value in env.items()]
        options.env = listed = ffi.new("char *[]", [*words, ffi.NULL])
        keep.append(listed)  # what a struct points to is nobody's
    handle = ffi.new_handle(log) if log else None
    if log:
        options.log, options.log_user = lib.ava_python_log, handle
    return Runtime(opened(lambda rt, err: lib.ava_runtime_new(rt, options, err), handle))
