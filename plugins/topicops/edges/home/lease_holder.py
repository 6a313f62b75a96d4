"""The holder of a lease: a run writes it into the lease, so that a waiting run can show it."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

import msgspec

from topicops import __version__
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.printable import printable


class LeaseHolder(msgspec.Struct, frozen=True):
    run: str
    """``<dag id or cli>/<run id>``."""
    host: str
    pid: int
    operation: str
    """What the run is doing: ``apply all``."""
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
    """Name the holder from the lease's content, which another version, or a person, may have written."""
    try:
        with json_errors():
            return str(msgspec.json.decode(data or b"", type=known(LeaseHolder)))
    except JsonError:
        return "a holder whose entry cannot be read"
