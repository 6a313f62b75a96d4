"""Every exit status of the ``topicops`` command, as docs/reference/commands.md lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    SUCCESS = 0
    """For ``apply``: all that may run has run, or there was nothing to do."""
    ERROR = 1
    """Invalid specs, wrong usage, a cluster that cannot be reached. ``apply``: it stopped before it sent anything."""
    CHANGES_PENDING = 2
    """``--detailed-exitcode``: there are changes, blocked topics or differences."""
    NOTHING_MAY_RUN = 3
    """``apply``: every change is held, skipped or blocked."""
    NOTHING_SENT = 4
    """``apply``: nothing was sent, because topics changed or are in use."""
    LEASE_HELD = 5
    """Another run holds the lease."""
    PARTLY_DONE = 6
    """``apply``: requests were sent, and not everything is known to be in effect."""
    NOT_VERIFIED = 7
    """``apply``: applied, but not verified; ``verify``: not healthy."""
    WRONG_CLUSTER = 8
    """The cluster is not the one that the environment or the plan names, too many topics are gone, or it is KRaft."""
    INTERRUPTED = 130
    """Ctrl-C."""
    TERMINATED = 143
    """SIGTERM."""


def status_after_signal(number: int) -> int:
    """Give the status of a process that a signal ended: 128 + its number, as shells count."""
    return 128 + number
