"""ava: background subagents, durable, limited, watched.

    with ava.open() as rt:
        run = rt.spawn("where is the lock taken?", role="code_reviewer", cwd="/src")
        print(run.wait().summary)

`open` speaks with the daemon of a data root, `embed` has the runtime in this process; all else is
the same. doc/BINDINGS.md is the way in, ava(3) has each call."""

from ava._errors import (ClosedError, Error, InvalidError, NotFoundError, TimeoutError, UnknownOutcomeError,
                         UnreachableError, lib, text)
from ava._runtime import Proposal, Run, Runtime, Session, Stream, embed, open
from ava._shapes import (FREE_ONLY, NOW, Difference, Event, Group, GroupOptions, Item, Replay, Result,
                         ResumeOptions, RunStatus, SessionStatus, SpawnOptions, Status)

__version__ = text(lib.ava_version())

__all__ = [
    "FREE_ONLY", "NOW", "ClosedError", "Difference", "Error", "Event", "Group", "GroupOptions", "InvalidError",
    "Item", "NotFoundError", "Proposal", "Replay", "Result", "ResumeOptions", "Run", "RunStatus", "Runtime",
    "Session", "SessionStatus", "SpawnOptions", "Status", "Stream", "TimeoutError", "UnknownOutcomeError",
    "UnreachableError", "embed", "open",
]
