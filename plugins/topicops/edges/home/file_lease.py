"""Leases without ZooKeeper: a locked file, which works on one host only; and no lease at all."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from topicops.edges.file_locks import try_lock
from topicops.edges.home.lease_holder import holder_text, this_process
from topicops.model.errors import ArtifactError, LeaseHeldError, LeaseLostError

POLL_S = 0.1


class FileLease:
    """Implements ``model.ports.Lease`` by ``flock``, for the processes of one host; it ends with its process.

    Args:
        path: The file; made if it is missing, and never removed: only its lock counts.
        lock_timeout_s: How long to wait for another holder.

    Raises:
        LeaseHeldError: On entering: another process has it.
    """

    def __init__(self, path: Path, *, run: str, operation: str, lock_timeout_s: float = 0.0) -> None:
        self._path = path
        self._holder = this_process(run=run, operation=operation)
        self._lock_timeout_s = lock_timeout_s
        self._descriptor = -1
        self._is_lost = False

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise ArtifactError(f"{self._path}: cannot be opened ({error.strerror}); check TOPICOPS_HOME") from error
        try:
            self._lock()
            self._name_holder()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def _name_holder(self) -> None:
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, msgspec.json.encode(self._holder), 0)
        except OSError as error:
            raise ArtifactError(f"{self._path}: cannot be written ({error.strerror}); check the disk") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def confirm(self) -> None:
        """Raise ``LeaseLostError`` if the path now leads to another file: our lock does not stop other runs then.

        A lost lease stays lost, even if the file comes back: another run may have begun meanwhile.
        """
        try:
            is_ours = os.path.samestat(self._path.stat(follow_symlinks=False), os.fstat(self._descriptor))
        except OSError:
            is_ours = False
        self._is_lost |= not is_ours
        if self._is_lost:
            raise LeaseLostError(f"the lease {self._path} was removed or replaced; nothing more is sent: run it again")

    def zxid(self) -> None:
        """None: this lease is not in ZooKeeper."""

    def _lock(self) -> None:
        deadline = time.monotonic() + self._lock_timeout_s
        while not try_lock(self._descriptor):
            if time.monotonic() >= deadline:
                holder = holder_text(os.pread(self._descriptor, 4096, 0))
                raise LeaseHeldError(
                    f"the lease {self._path} is held by {holder}; wait until it ends, or give --lock-timeout"
                )
            time.sleep(POLL_S)


class NoLease:
    """Implements ``model.ports.Lease`` for ``lease: none``: something outside must keep two runs apart."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def confirm(self) -> None:
        """Do nothing: this lease cannot be lost."""

    def zxid(self) -> None:
        """None: this lease is not in ZooKeeper."""
