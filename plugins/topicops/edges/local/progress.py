"""Progress of a long command, and a lock that reports when it must wait."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one line for a person."""


def quiet(_message: str) -> None:
    """Progress that is not shown."""


@contextmanager
def locked(file: Path, progress: Progress, *, waiting: str) -> Iterator[None]:
    """Hold the lock of that file, against other processes and threads; ``waiting`` is shown where it is not free."""
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
