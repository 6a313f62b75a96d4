"""Leases without ZooKeeper: locked files; and no lease at all. And the holder that a run writes into any lease."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import quote

import msgspec

from topicops import __version__
from topicops.edges.file_locks import is_file_at, try_lock
from topicops.edges.places import state_folder
from topicops.model.errors import ArtifactError, LeaseHeldError, LeaseLostError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.printable import printable
from topicops.model.waits import waiting_for

POLL_S = 0.1


class LeaseHolder(msgspec.Struct, frozen=True):
    run: str
    """``<dag id or cli>/<run id>``."""
    host: str
    pid: int
    operation: str
    """Work of the run: ``apply all``."""
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


def lease_files(home: Path, cluster_id: str) -> tuple[Path, Path]:
    """Return the files to lock: one for all runs of this host and account, one for all runs with this home.

    Raises ``ArtifactError`` where this account has no home folder.
    """
    name = lease_name(cluster_id, "lock")
    return state_folder() / "leases" / name, home / "lease" / name


def lease_name(cluster_id: str, kind: str) -> str:
    return f"{quote(cluster_id, safe='')}.{kind}"


class FileLease:
    """Implements ``model.ports.Lease`` by locks on files; it ends with its process.

    Args:
        paths: The files, locked in this order; made if they are missing, and never removed: only their locks count.
        lock_timeout_s: How long to wait for another holder.
        interrupted: Once true, it is waited for no longer.

    Raises:
        LeaseHeldError: On entering: another process holds one of them.
        ArtifactError: On entering: one of them cannot be opened, locked or written.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        run: str,
        operation: str,
        lock_timeout_s: float = 0.0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._paths = paths
        self._holder = this_process(run=run, operation=operation)
        self._lock_timeout_s = lock_timeout_s
        self._interrupted = interrupted
        self._files: list[tuple[Path, int]] = []
        """The locked files with their descriptors."""
        self._is_lost = False

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._lock_timeout_s
        try:
            with waiting_for("the lease, which another run holds", limit_s=self._lock_timeout_s):
                for path in self._paths:
                    self._lock(path, deadline)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for _, handle in self._files:
            with suppress(OSError):
                os.ftruncate(handle, 0)
        self._close()

    def confirm(self) -> None:
        """Raise ``LeaseLostError`` if a path now leads to another file: our lock does not stop other runs then.

        A lost lease stays lost, even if the file comes back: another run may have begun meanwhile.
        """
        gone = [path for path, handle in self._files if not is_file_at(path, handle)]
        self._is_lost |= bool(gone)
        if self._is_lost:
            names = " and ".join(map(str, gone or self._paths))
            raise LeaseLostError(f"the lease {names} was removed or replaced; nothing more is sent: run it again")

    def zxid(self) -> None:
        """Return None: this lease is not in ZooKeeper."""

    def server_time(self) -> None:
        """Return None: no server of the cluster keeps this lease."""

    def _lock(self, path: Path, deadline: float) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            self._files.append((path, handle))
            while not try_lock(handle):
                if time.monotonic() >= deadline or self._interrupted():
                    holder = holder_text(os.pread(handle, 4096, 0))
                    advice = "wait until it ends, or give --lock-timeout"
                    raise LeaseHeldError(f"the lease {path} is held by {holder}; {advice}")
                time.sleep(POLL_S)
            os.ftruncate(handle, 0)
            os.pwrite(handle, msgspec.json.encode(self._holder), 0)
        except OSError as error:
            raise ArtifactError(f"{path}: the lease cannot be taken ({error.strerror}); {_REMEDY}") from error

    def _close(self) -> None:
        for _, handle in self._files:
            with suppress(OSError):  # a network file system may report a lost connection here
                os.close(handle)
        self._files.clear()


_REMEDY = "check the folder, or set XDG_STATE_HOME and TOPICOPS_HOME to folders where files can be locked"


class NoLease:
    """Implements ``model.ports.Lease`` for ``lease: none``: something outside must keep two runs apart."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def confirm(self) -> None:
        """Do nothing: this lease cannot be lost."""

    def zxid(self) -> None:
        """Return None: this lease is not in ZooKeeper."""

    def server_time(self) -> None:
        """Return None: no server of the cluster keeps this lease."""
