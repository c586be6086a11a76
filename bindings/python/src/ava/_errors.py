"""The extension, and ava's errors as exceptions: `code` is the word that JSON errors have, the text
is ava's one sentence."""

from __future__ import annotations

import builtins
from typing import Any

try:
    from ava._native import ffi, lib
except ImportError as problem:
    if "libava.so" not in str(problem):
        raise
    raise ImportError(f"{problem}: install ava's library, or name its folder in LD_LIBRARY_PATH") from None


__all__ = ["ClosedError", "Error", "InvalidError", "NotFoundError", "TimeoutError", "UnknownOutcomeError",
           "UnreachableError", "checked", "error_of", "ffi", "lib", "text"]


class Error(Exception):
    """A call failed. str() is one sentence that says why."""

    def __init__(self, number: int, sentence: str = "") -> None:
        self.number = number  # AVA_ENOENT: -3
        self.code = text(lib.ava_python_word(number))  # "not_found"
        self.sentence = sentence or text(lib.ava_strerror(number))
        super().__init__(self.sentence)

    def __str__(self) -> str:
        return self.sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.number, self.sentence)


class InvalidError(Error, ValueError):
    """An argument cannot be right."""


class NotFoundError(Error, LookupError):
    """There is no run, quote or conversation of that name."""


class TimeoutError(Error, builtins.TimeoutError):
    """The wait ran out; it stopped no run."""


class UnreachableError(Error, ConnectionError):
    """No daemon serves, and none could be started."""


class UnknownOutcomeError(Error):
    """It may have happened: ask again with the same request_id."""


class ClosedError(Error, ValueError):
    """The runtime was closed, or belongs to another process."""


KINDS: dict[int, type[Error]] = {
    lib.AVA_EINVAL: InvalidError,
    lib.AVA_ENOENT: NotFoundError,
    lib.AVA_ETIMEOUT: TimeoutError,
    lib.AVA_ECONNECT: UnreachableError,
    lib.AVA_EUNKNOWN: UnknownOutcomeError,
}


def text(value: Any) -> str:
    """A C string; NULL is ""."""
    return str(ffi.string(value), "utf-8", "replace") if value else ""


def error_of(number: int, err: Any = None) -> Error:
    return KINDS.get(number, Error)(number, text(err.text) if err else "")


def checked(rv: int, err: Any) -> int:
    """A call's count, or its error raised."""
    if rv < 0:
        raise error_of(rv, err)
    return rv
