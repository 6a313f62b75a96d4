"""What unchanged files say, kept from one run to the next, so that they need not be opened.

A file that the work tree has as git holds it is known by its blob id: the same bytes say the same. All others are read.
A folder in which every file is known needs no judging either, until a time comes that one of them names.

The cache is nobody's only copy: one that is missing, damaged, of another program or not ours is as none, and nobody is
told. It is written as a whole, or not at all.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
from topicops.model.specs.document import Fields, Items, Node, Text, Tree

T = TypeVar("T")

_FOLDER = "specs"
_LATER_BELOW = 20
"""One file in so many may be new before all are written again."""

_PACKAGE = Path(__file__).parents[2]
_DECISIVE = ("model/**/*", "steps/**/*", "edges/specs/*.py")
"""Files of the package that decide what a spec says and what is said about it."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was said about all files of a folder, and while it holds."""

    diagnostics: tuple[Diagnostic, ...]
    files: int
    since: datetime
    until: datetime | None
    """From then on it may be another one; None: never, while the files are these."""

    def holds_at(self, now: datetime) -> bool:
        return self.since <= now and (self.until is None or now < self.until)

    @property
    def has_errors(self) -> bool:
        return any(diagnostic.is_error for diagnostic in self.diagnostics)


class _Kept(msgspec.Struct, frozen=True):
    """A judgement with the name of what it is about."""

    digest: str
    judgement: Judgement


_Nodes = dict[str, Fields | Items | Text]
"""What files say, by blob id."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A folder as it lies there, before any file is opened."""

    topics: Path
    places: Sequence[Place]
    blobs: Sequence[str | None]
    """Of each place; None: git does not hold what is there."""

    @cached_property
    def digest(self) -> str | None:
        """Names every file and its contents; None unless all are known."""
        if not self.places or None in self.blobs:
            return None
        names = "\0".join([place.file for place in self.places])
        both = "\0\0".join((names, *filter(None, self.blobs)))
        return hashlib.sha256(both.encode("utf-8", "surrogateescape")).hexdigest()


def _below(place: Place) -> str:
    above, name = place.folders, place.name
    return f"{above[0]}/{name}" if len(above) == 1 else "/".join((*above, name))


@dataclass(frozen=True)
class ParseCache:
    """Kept below ``folder``; a folder of specs has files of its own there. None: nothing is kept."""

    folder: Path | None
    most_bytes: int = 256 * 2**20
    """All folders of specs together; what was written first goes first."""

    def read_tree(self, topics: Path) -> Tree:
        """As ``edges.specs.reader.read_tree``, with fewer files opened."""
        return self.read(self.look(topics))[0]

    def look(self, topics: Path) -> Found:
        """What lies below ``topics``, and what of it git knows.

        Raises:
            UsageError: there is no such folder.
        """
        require_folder(topics)
        with gc_paused():
            if self.folder is None:
                places = list(walk(topics))
                return Found(topics=topics, places=places, blobs=[None] * len(places))
            places = []
            known = unchanged_blobs(topics, meanwhile=lambda: places.extend(walk(topics)))
            # A file that came meanwhile may have no blob, and one that went by now cannot be read.
            blobs = [known.get(_below(place)) if place.looks_regular else None for place in places]
        return Found(topics=topics, places=places, blobs=blobs)

    def read(self, found: Found) -> tuple[Tree, bool]:
        """What all files say, and whether each that was opened held what git holds."""
        path = self._path(found.topics, "nodes")
        with gc_paused():
            reading = _Reading(known=_load(path, _Nodes) or {})
            pairs = zip(found.places, found.blobs, strict=True)
            tree = tree_of([read_place(place, reading.reader(blob)) for place, blob in pairs])
            if len(reading.fresh) * _LATER_BELOW > len(reading.used):
                self._store(path, {**reading.used, **reading.fresh})
        return tree, reading.agrees

    def judgement(self, found: Found, environment: str | None, now: datetime) -> Judgement | None:
        """What was said about these very files, if it still holds."""
        if found.digest is None:
            return None
        kept = _load(self._path(found.topics, "judgement", environment), _Kept)
        return kept.judgement if kept and kept.digest == found.digest and kept.judgement.holds_at(now) else None

    def keep(self, found: Found, environment: str | None, judgement: Judgement) -> None:
        """Only for what ``read`` says that it agrees with git."""
        if found.digest is not None:
            self._store(self._path(found.topics, "judgement", environment), _Kept(found.digest, judgement))

    def _store(self, path: Path | None, value: object) -> None:
        if path is None:
            return
        # What cannot be written, or holds names that are no text, is not kept.
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


def users_cache() -> ParseCache:
    """Below ``$TOPICOPS_CACHE`` or the user's own folder for caches; nothing is kept for a user without a home."""
    try:
        return ParseCache(default_cache() / _FOLDER)
    except RuntimeError:
        return ParseCache(None)


@dataclass
class _Reading:
    """One reading of a folder."""

    known: Mapping[str, Node]
    used: dict[str, Node] = field(default_factory=dict)
    fresh: dict[str, Node] = field(default_factory=dict)
    agrees: bool = True

    def reader(self, blob: str | None) -> Callable[[Place], Node]:
        """Reads the one file that is to hold ``blob``."""

        def read(place: Place) -> Node:
            root = self.known.get(blob) if blob else None
            if blob and root is not None:
                self.used[blob] = root
                return root
            return self._open(place, blob)

        return read

    def _open(self, place: Place, blob: str | None) -> Node:
        agreed, self.agrees = self.agrees, False
        room = room_of(place)
        data = open_regular(place.path, room=room)
        is_blob = blob is not None and _blob_id(data, len(blob)) == blob
        self.agrees = agreed and is_blob
        root = nodes_of(data, room=room)
        if blob is not None and is_blob:
            self.fresh[blob] = root
        return root


def _blob_id(data: bytes, digits: int) -> str:
    """As git names contents: 40 digits of SHA-1, or 64 of SHA-256."""
    algorithm = hashlib.sha1 if digits == 40 else hashlib.sha256
    return algorithm(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# ---- files of the cache ----


def _load(path: Path | None, kind: type[T]) -> T | None:
    """What was stored, if this program and this user did it, and all of it is there."""
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
    """SHA-256 over all that decides what a file says and what is said about it, Python and libyaml included."""
    digest = hashlib.sha256(repr((__version__, API_VERSION, sys.version, yaml.__version__, libyaml_version())).encode())
    for path in decisive_files():
        digest.update(b"%s\0%d\0" % (path.name.encode(), path.stat().st_size))
        digest.update(path.read_bytes())
    return digest.hexdigest()


def decisive_files() -> list[Path]:
    """Sources and tables of the package, in a fixed order."""
    found = {path for pattern in _DECISIVE for path in _PACKAGE.glob(pattern) if path.suffix in (".py", ".json")}
    return sorted(found)
