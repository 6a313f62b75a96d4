"""The requests that a home makes to an object store, and what their answers mean. The library is obstore.

Every problem is an ``OSError``: ``FileNotFoundError``, ``FileExistsError``, ``StaleError`` or ``StoreError``.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from topicops.edges.extras import require_extra
from topicops.model.errors import UsageError
from topicops.model.printable import first_line

if TYPE_CHECKING:
    from obstore.store import ObjectStore

Version = Mapping[str, str]
"""What tells one content of an object from the one before: its ETag, or its generation."""

SCHEMES = ("s3", "gs", "az")
_EXAMPLES = ", ".join(f"{scheme}://bucket/prefix" for scheme in SCHEMES)
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
"""Variables with the address of a store; one with ``http://`` allows that no request is encrypted."""
TRIES = 4
"""Times that a conditional write is sent while nobody knows whether it took effect."""
PAUSE_S = 0.2
_WRITERS = 20
"""Writers of one object, each of which may be faster once."""
REQUEST_TIMEOUT = timedelta(seconds=10)
RETRY_TIMEOUT = timedelta(seconds=20)
_USED_BY: dict[str, int] = {}
"""Process that has made the first request: the library's threads are not in one that it forks, which would hang."""
_IGNORES = (
    "the store ignores the conditions of writes (If-None-Match, If-Match), so two runs could overwrite each other: set "
    "TOPICOPS_HOME to a store that has them, or to a folder"
)


class StoreError(OSError):
    """The store refused a request, or did not answer: then a write may have taken effect."""


class StaleError(OSError):
    """Another writer has replaced or removed the object since it was read."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    content: bytes
    version: Version
    written_at: datetime


class Bucket:
    """The objects below one URL; keys are relative to it.

    A conditional write of ours may take effect although its answer is lost. It is sent again then, and refused; so
    what the object holds is compared. ``content`` must therefore be one that no other writer would write.
    """

    def __init__(self, url: str, store: ObjectStore) -> None:
        import obstore

        self.url, self._library = url.rstrip("/"), obstore
        self._store = store
        self._is_proved = False
        self._proving = threading.Lock()

    def read(self, key: str) -> StoredObject:
        with self._errors(key):
            found = self._library.get(self._store, key)
            return StoredObject(bytes(found.bytes()), _version(found.meta), found.meta["last_modified"])

    def head(self, key: str) -> datetime:
        """Return when the object was written, by the store's clock."""
        with self._errors(key):
            return self._library.head(self._store, key)["last_modified"]

    def write(self, key: str, content: bytes) -> None:
        """Make or replace an object, whatever it holds now.

        This is conditional too: a request that arrives late, or twice, never takes a newer content away.
        """
        self.require_conditions()
        mode: str | Version = "create"
        for _ in range(_WRITERS):
            try:
                self._conditionally(key, content, mode)
            except (FileExistsError, StaleError):
                with suppress(FileNotFoundError):
                    mode = self.read(key).version
            else:
                return
        raise StoreError(errno.EBUSY, f"{_WRITERS} other writers were faster")

    def create(self, key: str, content: bytes) -> Version:
        """Make an object. Raises ``FileExistsError`` where there is one that this call did not make."""
        self.require_conditions()
        return self._conditionally(key, content, "create")

    def replace(self, key: str, content: bytes, version: Version) -> Version:
        """Replace this version of an object. Raises ``StaleError`` where there is another one, or none."""
        self.require_conditions()
        return self._conditionally(key, content, version)

    def remove(self, *keys: str) -> None:
        """Remove objects; a missing one is no problem."""
        for key in keys:
            with self._errors(key), suppress(FileNotFoundError):
                self._library.delete(self._store, key)

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects and folders right in a folder, sorted."""
        with self._errors(folder):
            found = self._library.list_with_delimiter(self._store, folder or None)
        paths = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def keys(self, folder: str, *, after: str | None = None) -> Iterator[tuple[str, datetime]]:
        """Yield each object below a folder, at any depth, in the order of the keys, with the time of its last write.

        Args:
            after: Only keys behind this one.
        """
        with self._errors(folder):
            for part in self._library.list(self._store, folder, offset=after):
                for each in sorted(part, key=lambda each: each["path"]):
                    yield each["path"], each["last_modified"]

    def require_conditions(self) -> None:
        """Prove once that the store refuses a write whose condition does not hold. Raises ``StoreError`` if not.

        Some stores and gateways take ``If-None-Match`` and ``If-Match``, and ignore them.
        """
        with self._proving:
            if not self._is_proved:
                self._prove_conditions()
                self._is_proved = True

    def _prove_conditions(self) -> None:
        key = f"probe/{secrets.token_hex(16)}"
        try:
            first = self._conditionally(key, b"1", "create")
            self._conditionally(key, b"2", first)
            taken = [self._takes(key, "create"), self._takes(key, first)]
        finally:
            with suppress(OSError):
                self.remove(key)
        if any(taken):
            raise StoreError(errno.ENOTSUP, f"{self.url}: {_IGNORES}")

    def _takes(self, key: str, mode: str | Version) -> bool:
        """Return whether the store takes a write whose condition does not hold."""
        try:
            self._conditionally(key, b"3", mode)
        except (FileExistsError, StaleError):
            return False
        return True

    def _conditionally(self, key: str, content: bytes, mode: str | Version) -> Version:
        for number in range(TRIES):
            try:
                return self._put(key, content, mode)
            except (FileExistsError, StaleError) as error:
                try:
                    found = self.read(key)
                except FileNotFoundError:
                    raise error from None
                if found.content == content:
                    return found.version
                raise
            except StoreError as error:
                if number == TRIES - 1 or error.errno != errno.EIO:
                    raise
                time.sleep(PAUSE_S * 2**number)
        raise AssertionError("not reached")

    def _put(self, key: str, content: bytes, mode: str | Version) -> Version:
        with self._errors(key):
            try:
                found = self._library.put(self._store, key, content, mode=mode, use_multipart=False)  # type: ignore[arg-type]  # its types are narrower
            except FileNotFoundError as error:
                raise StoreError(errno.ENXIO, f"{self.url}: there is no such bucket") from error
            return _version(found)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Raise the library's errors as ``OSError``; they may show an address, and no login."""
        from obstore import exceptions

        place = f"{self.url}/{key}"
        if _USED_BY.setdefault("pid", os.getpid()) != os.getpid():
            raise StoreError(errno.EDEADLK, "a process that used the store has made this one by fork: start it anew")
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", place) from error
        except exceptions.AlreadyExistsError as error:
            raise FileExistsError(errno.EEXIST, "the object exists already", place) from error
        except exceptions.PreconditionError as error:
            raise StaleError(errno.ESTALE, "another writer was faster", place) from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise StoreError(errno.EACCES, f"the login or its rights are refused: {first_line(error)}") from error
        except exceptions.NotSupportedError as error:
            raise StoreError(errno.ENOTSUP, f"{self.url}: {_IGNORES}") from error
        except (exceptions.BaseError, ValueError) as error:
            raise StoreError(errno.EIO, first_line(error)) from error


def _version(found: Mapping[str, object]) -> Version:
    return {name: str(found[name]) for name in ("e_tag", "version") if found.get(name)}


@cache
def open_bucket(url: str) -> Bucket:
    """Open the objects below ``s3://bucket/prefix``, ``gs://…`` or ``az://…``; asks nothing yet.

    The login is that of the library's own variables: ``AWS_…``, ``GOOGLE_…``, ``AZURE_…``.

    Raises ``UsageError``, or ``MissingExtraError`` without the library.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES or not rest.strip("/"):
        raise UsageError(f"TOPICOPS_HOME={url}: write a folder, file:///path, or {_EXAMPLES}")
    require_extra("store")
    from obstore import exceptions
    from obstore.store import from_url

    try:
        store = from_url(
            url,
            client_options={
                "timeout": REQUEST_TIMEOUT,
                "connect_timeout": REQUEST_TIMEOUT / 2,
                "allow_http": any(os.environ.get(name, "").startswith("http://") for name in ENDPOINTS),
            },
            retry_config={"max_retries": 3, "retry_timeout": RETRY_TIMEOUT},
        )
    except (exceptions.BaseError, ValueError) as error:
        raise UsageError(f"TOPICOPS_HOME={url}: {first_line(error)}") from error
    return Bucket(url, store)
