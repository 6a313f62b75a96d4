"""Standard streams that never fail a command: its exit status says what the run did, not where its text went.

A text that a stream cannot take any more is dropped, and the first reason is kept. A character that its encoding does
not have is escaped as JSON escapes it, so that JSON stays JSON.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from select import select
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ESCAPED = "topicops.escaped"


class _UnfailingFile(io.FileIO):
    """A stream's file descriptor. After its first failure it takes everything and keeps nothing."""

    def __init__(self, number: int, reason: str = "") -> None:
        super().__init__(number, "w", closefd=False)
        self.is_lost = bool(reason)
        self.reason = reason
        """Reason of the loss that was not reported yet; empty if the reader closed the pipe, as ``head`` does."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            while not self.is_lost:
                if (written := super().write(data)) is not None:
                    return written
                select([], [self], [])  # it is a pipe that another program made non-blocking, and it is full
        except OSError as error:
            self.is_lost = True
            self.reason = "" if isinstance(error, BrokenPipeError) else error.strerror or type(error).__name__
        return memoryview(data).nbytes


def make_unfailing() -> None:
    """Put such streams in place of Python's own. No file of the run can get the number of a closed stream then."""
    codecs.register_error(_ESCAPED, _escaped)
    is_closed = [_hold(number) for number in range(3)]
    sys.stdin = _input(sys.stdin)
    sys.stdout = _stream(1, sys.stdout, "it is closed" if is_closed[1] else "")
    sys.stderr = _stream(2, sys.stderr, "it is closed" if is_closed[2] else "")


def taken_loss(stream: TextIO) -> str:
    """Give why a text did not reach the stream, at the first call after that; else an empty text."""
    file = getattr(getattr(stream, "buffer", None), "raw", None)
    if not isinstance(file, _UnfailingFile):
        return ""
    reason, file.reason = file.reason, ""
    return reason


def _hold(number: int) -> bool:
    """Return whether the descriptor was closed; ``/dev/null`` has its number then."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # gets the smallest free number
        return True
    return False


def _input(before: TextIO | None) -> TextIO:
    encoding = before.encoding if before else "utf-8"
    return open(0, encoding=encoding, errors="surrogateescape", closefd=False)


def _stream(number: int, before: TextIO | None, reason: str) -> TextIO:
    buffer = io.BufferedWriter(_UnfailingFile(number, reason))
    encoding = before.encoding if before else "utf-8"
    return io.TextIOWrapper(buffer, encoding, _ESCAPED, line_buffering=True)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
