"""Who holds a lease: what a run writes into it, for the one that waits."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

import msgspec

from topicops import __version__
from topicops.model.printable import printable


class LeaseHolder(msgspec.Struct, frozen=True):
    run: str
    """``<dag id or cli>/<run id>``."""
    host: str
    pid: int
    operation: str
    """``apply plan 3f9c…``: what it is doing."""
    since: str
    """RFC 3339 UTC, by the holder's own clock."""
    version: str

    def __str__(self) -> str:
        what = f"run {self.run} ({self.operation}), host {self.host}, pid {self.pid}, since {self.since}"
        return printable(f"{what}, topicops {self.version}")


def this_process(*, run: str, operation: str) -> LeaseHolder:
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return LeaseHolder(run, socket.gethostname(), os.getpid(), operation, since, __version__)


def holder_text(data: bytes | None) -> str:
    """Name the holder from what stands in the lease; another version, or a hand, may have written it."""
    try:
        return str(msgspec.json.decode(data or b"", type=LeaseHolder))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "somebody whose entry cannot be read"
