"""What calls give, as values, and what they take. The names of fields are those of ava.h, whose
comments say more; times in milliseconds, money in millionths of a US dollar (-1: unknown).
A test holds each class against its struct, so none has less than the header."""

from __future__ import annotations

import dataclasses
import json
import operator
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from ava._errors import InvalidError, ffi, lib, text

if TYPE_CHECKING:
    from collections.abc import Sequence

Status = Literal["starting", "queued", "running", "waiting", "parked", "blocked",
                 "paused", "success", "timeout", "cost_exceeded", "tokens_exceeded", "iterations_exceeded", "cancelled",
                 "error", "no_result", "not_started", "unproven"]
ProposalState = Literal["pending", "confirmed", "rejected", "expired"]
ItemKind = Literal["said", "proposed", "started", "doing", "asked", "answered", "result", "failed",
                   "expired", "noted"]

NOW: int = lib.AVA_NOW
FREE_ONLY: int = lib.AVA_FREE_ONLY  # value of max_cost_microusd: only models that cost nothing


@dataclass(frozen=True)
class RunStatus:
    """A run as it is now."""
    id: str
    trace: str
    role: str
    task: str
    model: str
    session: str
    user: str
    origin: str
    cwd: str
    status: Status
    stop_reason: str
    activity: str
    last_tool: str
    started_ms: int
    ended_ms: int
    last_tool_ms: int
    elapsed_ms: int
    tokens: int
    cost_microusd: int
    iteration: int
    timeout_ms: int
    max_cost_microusd: int
    max_tokens: int
    max_iterations: int
    asks: str
    asks_call: str

    @property
    def ended(self) -> bool:
        return self.ended_ms != 0


@dataclass(frozen=True)
class Result:
    """How a run ended, and what it found."""
    status: Status
    run: str
    trace: str
    model: str
    stop_reason: str
    summary: str
    error: str
    output: Any  # what the run submitted, decoded; None: nothing
    confidence: float
    partial: bool
    unverified: bool
    tokens: int
    cost_microusd: int
    duration_ms: int
    iterations: int
    citations: int
    json: dict[str, Any]  # the whole result (doc/api.yaml, RunResult)


@dataclass(frozen=True)
class Group:
    """Several runs of one quote."""
    running: bool
    chain: bool
    size: int
    ended: int
    succeeded: int
    tokens: int
    cost_microusd: int
    runs: list[RunStatus]


@dataclass(frozen=True)
class Difference:
    lsn: int
    seq: int
    type: str
    call: str
    what: str
    byte: int
    recorded: str
    replayed: str


@dataclass(frozen=True)
class Replay:
    """A run played again from its record."""
    identical: bool
    complete: bool
    reason: str
    events: int
    calls: int
    found: int
    differences: list[Difference]


@dataclass(frozen=True)
class SessionStatus:
    """A conversation with Ava."""
    id: str
    title: str
    cwd: str
    user: str
    model: str
    created_ms: int
    updated_ms: int
    tokens: int
    cost_microusd: int
    live_runs: int
    waiting: int
    busy: bool


@dataclass(frozen=True)
class Event:
    """A line of the log. doc/events.json has all types."""
    lsn: int
    seq: int
    time_ms: int
    type: str
    agent: str
    session: str
    trace: str
    user: str
    json: str  # the whole line

    def content(self) -> dict[str, Any]:
        return dict(json.loads(self.json).get("content") or {})


class Item(TypedDict, total=False):
    """What a person sees of an event (doc/ITEMS.md)."""
    lsn: int
    at: str
    kind: ItemKind
    session: str
    run: str
    role: str
    ask: str
    title: str
    text: str
    cut: bool
    detail: dict[str, Any]


class Terms(TypedDict, total=False):
    """What one run, several, and a resumed one are begun with."""
    session: str
    request_id: str
    confirm: str
    timeout_ms: int
    max_cost_microusd: int


class SpawnOptions(Terms, total=False):
    """What a run gets beside its task (struct ava_spawn); what is left out is the default."""
    role: str
    context: str
    model: str
    preset: str
    cwd: str | os.PathLike[str]
    max_tokens: int
    max_iterations: int
    extended_thinking: int
    instructions: int
    tools: Sequence[str]
    grants: Sequence[str]
    ask_before: Sequence[str]
    tags: Sequence[str]
    output_schema: str
    on_limit: str
    on_quota: str
    rationale: str
    id: str  # of a run in a group, as `after`
    after: Sequence[str]
    check: str
    check_rounds: int


class GroupOptions(Terms, total=False):
    """What several runs have together (struct ava_spawn_group)."""
    cwd: str | os.PathLike[str]
    chain: bool
    share: bool


class ResumeOptions(Terms, total=False):
    """What differs from the ended run (struct ava_resume); `from_call` is its `from`."""
    model: str
    from_call: int
    checkpoint: str
    max_tokens: int
    max_iterations: int


# --- from C

STATES: tuple[ProposalState, ...] = ("pending", "confirmed", "rejected", "expired")
JSON = {"output", "json", "quote", "config"}
T = TypeVar("T")


def value_of(kind: str, name: str, value: Any) -> Any:
    """A field's value in Python, by its type in C and in the class."""
    kind = kind.rpartition(".")[2]
    if isinstance(value, (int, float)):
        return bool(value) if kind == "bool" else \
            text(lib.ava_status_name(value)) if kind == "Status" else \
            STATES[int(value)] if kind == "ProposalState" else value
    if ffi.typeof(value).item.cname == "char":
        word = text(value)
        return (json.loads(word) if word else None) if name in JSON and kind != "str" else word
    return value


def shape(cls: type[T], c: Any, **more: Any) -> T:
    """A value of `cls` from a struct with the same names; `more` are the fields that differ."""
    for field in dataclasses.fields(cls):
        if field.name not in more:
            more[field.name] = value_of(str(field.type), field.name, getattr(c, field.name))
    return cls(**more)


def rows(cls: type[T], list_: Any, n: int) -> list[T]:
    return [shape(cls, list_[i]) for i in range(n)]


# --- to C

def utf8(value: str, keep: list[Any]) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"a str is wanted, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidError(lib.AVA_EINVAL, "a text must not have a NUL in it")
    keep.append(ffi.new("char[]", value.encode("utf-8", "surrogateescape")))
    return keep[-1]


def fill(c: Any, options: dict[str, Any], keep: list[Any]) -> Any:
    """Put options into a struct; `keep` has what it points to."""
    kinds = {name: field.type for name, field in ffi.typeof(c).item.fields}
    for name, value in options.items():
        if name not in kinds:
            raise TypeError(f"there is no option {name!r}; there are: {', '.join(sorted(kinds))}")
        if value is None:
            continue
        if name in ("cwd", "root"):
            value = os.path.abspath(os.fspath(value))
        if kinds[name].kind == "primitive":
            try:
                setattr(c, name, operator.index(value))
            except OverflowError:
                raise InvalidError(lib.AVA_EINVAL, f"{name} is too big") from None
        elif kinds[name] is ffi.typeof("char *"):
            setattr(c, name, utf8(value, keep))
        elif isinstance(value, str) or kinds[name] is not ffi.typeof("char **"):
            raise TypeError(f"{name} must be a list of str")
        else:
            words = [utf8(word, keep) for word in value]
            keep.append(ffi.new("char *[]", words))
            setattr(c, name, keep[-1])
            setattr(c, "n" + name, len(words))
    return c
