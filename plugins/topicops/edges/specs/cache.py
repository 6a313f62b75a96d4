"""A cache between runs: the diagnostics of a folder of specs in which no file has changed.

A file that is in the work tree as git stores it is recognised by its blob id: the same id means the same bytes. If all
files of a folder are recognised, no file is opened, until the next time that a pause or an exception of these files
ends. If one is not, all files are read.

A missing, damaged or foreign cache, or one of another version, is ignored silently. A cache file is written whole or
not at all.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from yaml._yaml import get_version_string as libyaml_version

from topicops import __version__
from topicops.edges.cache_folder import default_cache
from topicops.edges.durable_files import write_atomically
from topicops.edges.specs.git import unchanged_blobs
from topicops.edges.specs.nodes import nodes_of
from topicops.edges.specs.open_files import Place, open_regular, require_folder, room_of, walk
from topicops.edges.specs.reader import read_place, tree_of
from topicops.model.gc_pause import gc_paused
from topicops.model.specs.desired import API_VERSION
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Node, Tree

T = TypeVar("T")

_FOLDER = "specs"

_PACKAGE = Path(__file__).parents[2]
_DECISIVE = ("model/**/*", "steps/**/*", "edges/specs/*.py")
"""Files of the package that decide which nodes and diagnostics a spec file has."""


class CachedDiagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """The diagnostics of all files of a folder, and the time for which they are valid."""

    diagnostics: tuple[Diagnostic, ...]
    files: int
    since: datetime
    until: datetime | None
    """The folder must be validated again from then on; None: never, while its files stay the same."""

    def is_valid_at(self, now: datetime) -> bool:
        return self.since <= now and (self.until is None or now < self.until)

    @property
    def has_errors(self) -> bool:
        return any(diagnostic.is_error for diagnostic in self.diagnostics)


class _FolderEntry(msgspec.Struct, frozen=True):
    """Diagnostics, and the digest of the folder that they are about."""

    digest: str
    cached: CachedDiagnostics


@dataclass(frozen=True, kw_only=True)
class FolderListing:
    """The files of a folder and their blob ids; no file is opened for it."""

    topics: Path
    places: Sequence[Place]
    blobs: Sequence[str | None]
    """One for each place; None: git does not have the file as it is."""

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 over the names and blob ids of all files; None if a blob id is missing."""
        if not self.places or None in self.blobs:
            return None
        names = "\0".join([place.file for place in self.places])
        both = "\0\0".join((names, *filter(None, self.blobs)))
        return hashlib.sha256(both.encode("utf-8", "surrogateescape")).hexdigest()


def _below(place: Place) -> str:
    above, name = place.folders, place.name
    return f"{above[0]}/{name}" if len(above) == 1 else "/".join((*above, name))


@dataclass(frozen=True)
class DiagnosticsCache:
    """Files below ``folder``, one for each folder of specs and environment. ``folder`` None: nothing is cached."""

    folder: Path | None
    most_bytes: int = 256 * 2**20
    """For all folders of specs together; the oldest files are deleted first."""

    def list_folder(self, topics: Path) -> FolderListing:
        """The files below ``topics`` with the blob ids that git has for them.

        Raises:
            UsageError: there is no such folder.
        """
        require_folder(topics)
        with gc_paused():
            if self.folder is None:
                places = list(walk(topics))
                return FolderListing(topics=topics, places=places, blobs=[None] * len(places))
            places = []
            known = unchanged_blobs(topics, meanwhile=lambda: places.extend(walk(topics)))
            # A file that was just made may have no blob; one that was just deleted cannot be read later.
            blobs = [known.get(_below(place)) if place.looks_regular else None for place in places]
        return FolderListing(topics=topics, places=places, blobs=blobs)

    def read(self, listing: FolderListing) -> tuple[Tree, bool]:
        """The tree, and whether every file had the bytes that git stores."""
        with gc_paused():
            if listing.digest is None:
                return tree_of([read_place(place) for place in listing.places]), False
            pairs = zip(listing.places, listing.blobs, strict=True)
            checks = [_CheckedFile(place, blob) for place, blob in pairs]
            tree = tree_of([read_place(check.place, check.read) for check in checks])
        return tree, all(check.matches_git for check in checks)

    def diagnostics(self, listing: FolderListing, environment: str | None, now: datetime) -> CachedDiagnostics | None:
        """The diagnostics of exactly these files, if they are cached and still valid."""
        if listing.digest is None:
            return None
        entry = _load(self._path(listing.topics, "diagnostics", environment), _FolderEntry)
        return entry.cached if entry and entry.digest == listing.digest and entry.cached.is_valid_at(now) else None

    def store_diagnostics(self, listing: FolderListing, environment: str | None, found: CachedDiagnostics) -> None:
        """Call it only if ``read`` found that the files match git."""
        if listing.digest is not None:
            self._store(self._path(listing.topics, "diagnostics", environment), _FolderEntry(listing.digest, found))

    def _store(self, path: Path | None, value: object) -> None:
        if path is None:
            return
        # A value that cannot be written, or has names that are not UTF-8, is not cached.
        with suppress(OSError, UnicodeError):
            payload = msgspec.msgpack.encode(value)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, _head(payload) + payload, mode=0o600, is_durable=False)
            _make_room(path.parent, self.most_bytes)

    def _path(self, topics: Path, *what: str | None) -> Path | None:
        if self.folder is None:
            return None
        name = repr((os.path.realpath(topics), *what)).encode("utf-8", "surrogateescape")
        return self.folder / f"{hashlib.sha256(name).hexdigest()[:32]}.{what[0]}"


def users_cache() -> DiagnosticsCache:
    """Below ``$TOPICOPS_CACHE`` or the user's cache folder; a user without a home folder has no cache."""
    try:
        return DiagnosticsCache(default_cache() / _FOLDER)
    except RuntimeError:
        return DiagnosticsCache(None)


@dataclass(slots=True)
class _CheckedFile:
    place: Place
    blob: str | None
    matches_git: bool = False
    """Whether the file was read and had the bytes of ``blob``."""

    def read(self, place: Place) -> Node:
        room = room_of(place)
        data = open_regular(place.path, room=room)
        self.matches_git = self.blob is not None and _blob_id(data, len(self.blob)) == self.blob
        return nodes_of(data, room=room)


def _blob_id(data: bytes, digits: int) -> str:
    """As git computes it: 40 digits of SHA-1, or 64 of SHA-256."""
    algorithm = hashlib.sha1 if digits == 40 else hashlib.sha256
    return algorithm(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# ---- files of the cache ----


def _load(path: Path | None, kind: type[T]) -> T | None:
    """The stored value, if this version of the program and this user wrote it, and it is complete."""
    try:
        data = _own_bytes(path) if path is not None else b""
        head, payload = data[: len(_head(b""))], memoryview(data)[len(_head(b"")) :]
        return msgspec.msgpack.decode(payload, type=kind) if head == _head(payload) else None
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _own_bytes(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        return file.read() if is_ours else b""


def _make_room(folder: Path, most_bytes: int) -> None:
    kept = 0
    files = [(status.st_mtime, status.st_size, path) for path in folder.iterdir() for status in (path.lstat(),)]
    for _, size, path in sorted(files, reverse=True):
        kept += size
        if kept > most_bytes:
            path.unlink(missing_ok=True)


def _head(payload: bytes | memoryview) -> bytes:
    return f"topicops {program()} {zlib.crc32(payload):08x}\n".encode()


@cache
def program() -> str:
    """SHA-256 over everything that decides nodes and diagnostics: our sources and tables, Python and libyaml."""
    digest = hashlib.sha256(repr((__version__, API_VERSION, sys.version, yaml.__version__, libyaml_version())).encode())
    for path in decisive_files():
        digest.update(b"%s\0%d\0" % (path.name.encode(), path.stat().st_size))
        digest.update(path.read_bytes())
    return digest.hexdigest()


def decisive_files() -> list[Path]:
    """Sources and tables of the package, in a fixed order."""
    found = {path for pattern in _DECISIVE for path in _PACKAGE.glob(pattern) if path.suffix in (".py", ".json")}
    return sorted(found)
