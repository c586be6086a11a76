"""Answers that are as they should be, in both forms: when these fail, look here first."""

from play import Row
from service import asubmit, acall, call, submit

ROWS = [
    Row("plain_chat", lambda n, r: call(n, r, "list_files", {"path": "."}) if n == 1 else submit(n, r), requests=2,
        summary="ok done"),
    Row("plain_messages", lambda n, r: acall(n, r, "list_files", {"path": "."}) if n == 1 else asubmit(n, r),
        on="anthropic", requests=2, summary="ok done"),
]
