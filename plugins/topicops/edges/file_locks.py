"""Locks on files by ``flock``: they keep processes and threads apart, and end with their process.

On a local disk they count for one host, on NFS for all hosts. NFS takes an exclusive lock only over a descriptor that
may write (flock(2), "NFS details").

The library ``filelock`` does not fit here: it truncates the file that it locks, and these files hold data.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(
    path: Path, *, flags: int = os.O_RDWR | os.O_CREAT, on_wait: Callable[[], object] = lambda: None
) -> Iterator[int]:
    """Hold the lock of a file inside the block; gives its descriptor.

    Args:
        flags: How to open the file, as for ``os.open``; with ``O_RDWR``.
        on_wait: Called once if another process or thread holds the lock.

    Raises ``OSError``: the file cannot be opened; a link is not followed.
    """
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        if not try_lock(handle):
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def is_file_at(path: Path, handle: int) -> bool:
    """Return whether the path leads to this descriptor's file: else another process removed or renamed it."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(handle))
    except OSError:
        return False


def try_lock(handle: int) -> bool:
    """Lock the file of this descriptor, until it is closed; False where another one holds the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
