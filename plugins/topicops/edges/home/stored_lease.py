"""The lease in an object store: one for all hosts, an object that its holder replaces again and again.

No clocks of two hosts are compared. The holder counts from before each of its writes, by a clock of its own that also
runs while the host sleeps. A waiting run takes the lease over only after it has seen the same version for the whole
duration, by its own clock, counted from its first look: that ends later than the holder's count in any case.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, Self

import msgspec

from topicops.edges.durable_files import as_artifact_error
from topicops.edges.home.file_lease import LeaseHolder, this_process
from topicops.edges.object_store import StaleError, StoredObject, Version
from topicops.edges.places import StoredPath
from topicops.model.errors import ArtifactError, LeaseHeldError, LeaseLostError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.waits import waiting_for

logger = logging.getLogger(__name__)

DURATION_S = 90.0
"""Seconds after its last write for which a lease is its holder's."""
NEEDED_S = 65.0
"""Seconds of it that a request needs: the longest that a client goes on sending one."""
RENEW_EVERY_S = 5.0
POLL_S = 1.0
DRIFT = 1.1
"""Share of the duration that a waiting run waits, because two clocks do not run equally fast."""


def _clock() -> float:
    """Return seconds that also pass while the host sleeps, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the object holds."""

    holder: LeaseHolder | None
    """Run that has it; None means that it is free."""
    number: int
    """Fencing number: each holder's is higher than that of the one before."""
    duration_s: float
    token: str
    """Random text of this write: no two writes have the same content."""


class StoredLease:
    """Implements ``model.ports.Lease`` by an object; renewed by a thread of its own.

    Args:
        lock_timeout_s: How long to wait for a holder that is alive. The lease of a run that died is waited for in any
            case, because nobody else ends it: at most its duration and a tenth.
        interrupted: Once true, it is waited for no longer.

    Raises:
        LeaseHeldError: On entering: another run holds it.
        ArtifactError: On entering: the store refuses, or does not answer.
    """

    def __init__(
        self,
        path: StoredPath,
        *,
        run: str,
        operation: str,
        lock_timeout_s: float = 0.0,
        interrupted: Callable[[], bool] = lambda: False,
        duration_s: float = DURATION_S,
        needed_s: float = NEEDED_S,
        renew_every_s: float = RENEW_EVERY_S,
        poll_s: float = POLL_S,
    ) -> None:
        self._path, self._holder = path, this_process(run=run, operation=operation)
        self._lock_timeout_s, self._interrupted = lock_timeout_s, interrupted
        self._duration_s, self._needed_s = duration_s, needed_s
        self._renew_every_s, self._poll_s = renew_every_s, poll_s
        self.number = 0
        """Fencing number while it is held."""
        self._version: Version = {}
        self._valid_until = 0.0
        self._sent: dict[str, float] = {}
        """When each write began whose answer is not known, by token."""
        self._lost = ""
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_often, name="lease", daemon=True)

    def __enter__(self) -> Self:
        with (
            waiting_for("the lease, which another run holds", limit_s=self._lock_timeout_s),
            as_artifact_error(self._path, "the lease cannot be taken", "; check the store and its rights"),
        ):
            self._take()
        logger.info("lease taken place=%s run=%s number=%d", self._path, self._holder.run, self.number)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if not self._lost:
            with suppress(OSError, LeaseLostError):  # then it ends by itself
                self._write(None)

    def confirm(self) -> None:
        """Raise ``LeaseLostError`` unless the lease lasts for a whole request. A lost lease stays lost."""
        if not self._lost and self._valid_until - _clock() < self._needed_s:
            self._renew()
        if not self._lost and self._valid_until - _clock() < self._needed_s:
            self._lost = "the store did not take its renewal in time"
        if self._lost:
            raise LeaseLostError(
                f"the lease {self._path} is no longer ours: {self._lost}; nothing more is sent: check what was done, "
                "then run it again"
            )

    def zxid(self) -> None:
        """Return None: this lease is not in ZooKeeper."""

    def server_time(self) -> None:
        """Return None: no server of the cluster keeps this lease."""

    def _take(self) -> None:
        asked_at, seen, seen_at = _clock(), dict[str, str](), 0.0
        while True:
            found, entry = self._look()
            if found is None or entry is None or entry.holder is None:
                if self._took(found, entry):
                    return
                continue
            if found.version != seen:
                is_alive, seen, seen_at = bool(seen), {**found.version}, _clock()
                if is_alive and (seen_at - asked_at >= self._lock_timeout_s or self._interrupted()):
                    self._refuse(entry)
            elif _clock() - seen_at > entry.duration_s * DRIFT:
                logger.warning("%s: taken from %s, which has not renewed it", self._path, entry.holder)
                if self._took(found, entry):
                    return
                continue
            elif self._interrupted():
                self._refuse(entry)
            time.sleep(self._poll_s)

    def _refuse(self, entry: StoredEntry) -> NoReturn:
        advice = "wait until it ends, or give --lock-timeout"
        raise LeaseHeldError(f"the lease {self._path} is held by {entry.holder}; {advice}")

    def _look(self) -> tuple[StoredObject | None, StoredEntry | None]:
        try:
            found = self._path.bucket.read(self._path.key)
        except FileNotFoundError:
            return None, None
        try:
            with json_errors():
                return found, msgspec.json.decode(found.content, type=known(StoredEntry))
        except JsonError as error:
            advice = "look who wrote it, and remove it when no run is at work"
            raise ArtifactError(f"{self._path}: the lease is damaged: {error}; {advice}") from error

    def _took(self, found: StoredObject | None, entry: StoredEntry | None) -> bool:
        """Return whether it is ours now; False where another run was faster."""
        self.number = entry.number + 1 if entry else 1
        asked_at, content = _clock(), self._entry(self._holder, secrets.token_hex(16))
        try:
            if found is None:
                self._version = self._path.bucket.create(self._path.key, content)
            else:
                self._version = self._path.bucket.replace(self._path.key, content, found.version)
        except (FileExistsError, StaleError):
            return False
        self._valid_until = asked_at + self._duration_s
        return True

    def _renew_often(self) -> None:
        while not self._ended.wait(self._renew_every_s) and not self._lost:
            self._renew()

    def _renew(self) -> None:
        """Write it anew. What the store does not answer now is tried again, until the lease is over."""
        with suppress(OSError, LeaseLostError):
            self._write(self._holder)

    def _write(self, holder: LeaseHolder | None) -> None:
        with self._writing:
            token = secrets.token_hex(16)
            asked_at = self._sent[token] = _clock()
            try:
                self._version = self._path.bucket.replace(self._path.key, self._entry(holder, token), self._version)
            except StaleError:
                asked_at = self._version_of_lost_answer()
            self._valid_until = asked_at + self._duration_s
            self._sent.clear()

    def _version_of_lost_answer(self) -> float:
        """Take the version of an earlier write of ours, whose answer was lost; returns when that one began."""
        try:
            found, entry = self._look()
        except ArtifactError:
            found, entry = None, None
        if found is None or entry is None or entry.token not in self._sent:
            self._lost = f"{entry.holder} has it now" if entry and entry.holder else "it was removed or replaced"
            raise LeaseLostError(self._lost)
        self._version = found.version
        return self._sent[entry.token]

    def _entry(self, holder: LeaseHolder | None, token: str) -> bytes:
        entry = StoredEntry(holder=holder, number=self.number, duration_s=self._duration_s, token=token)
        return msgspec.json.encode(entry)
