"""Places of a home: in a folder, where they are of ``pathlib``, or in an object store."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TypeAlias, TypeVar, cast
from urllib.parse import unquote, urlsplit

from topicops.edges.object_store import Bucket, open_bucket
from topicops.model.errors import ArtifactError, UsageError

READ_AT_ONCE = 32
"""Objects that are asked for at the same time."""


@dataclass(frozen=True, slots=True)
class StoredPath:
    """The part of ``pathlib.Path`` that a home needs, in an object store; problems are ``OSError``, as there.

    What grows by lines is no object but a folder of them: ``<key>/000000000001`` and so on, none of which is ever
    written again. Reading gives all of them, one after the other.
    """

    bucket: Bucket
    key: str = ""

    def __str__(self) -> str:
        return f"{self.bucket.url}/{self.key}".rstrip("/")

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(self.bucket, f"{self.key}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.key).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.key).suffix

    @property
    def parent(self) -> StoredPath:
        return StoredPath(self.bucket, self.key.rpartition("/")[0])

    def exists(self) -> bool:
        with suppress(FileNotFoundError):
            return bool(self.bucket.head(self.key))
        return any(True for _ in self.bucket.keys(self.key))

    def is_file(self) -> bool:
        return self.exists()

    def read_bytes(self) -> bytes:
        try:
            return self.bucket.read(self.key).content
        except FileNotFoundError:
            if parts := [*self.parts()]:
                return b"".join(contents(parts))
            raise

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok:
            self.bucket.head(self.key)
        self.bucket.remove(self.key)

    def glob(self, pattern: str) -> Iterator[StoredPath]:
        """Yield what is right in this folder and matches; ``pattern`` has no slash."""
        return (self / name for name in self.bucket.names(self.key) if fnmatchcase(name, pattern))

    def parts(self, *, after: int = -1) -> Iterator[StoredPath]:
        """Yield the objects of what grows, in their order; only those with a higher number than ``after``."""
        start = None if after < 0 else f"{self.key}/{part_name(after)}"
        return (StoredPath(self.bucket, key) for key, _ in self.bucket.keys(self.key, after=start))

    def named(self, text: str) -> StoredPath:
        """Return the place of the same home that ``str`` gave this text for. Raises ``ArtifactError`` for another."""
        start = f"{self.bucket.url}/"
        if not text.startswith(start):
            raise ArtifactError(f"{text} is not in the home {self.bucket.url}")
        return StoredPath(self.bucket, text.removeprefix(start))


Place: TypeAlias = Path | StoredPath
AnyPlace = TypeVar("AnyPlace", bound=Place)


def below(folder: AnyPlace, name: str) -> AnyPlace:
    """Return the place of this name in the folder: a place of the same kind, which mypy cannot know of a union."""
    return cast("AnyPlace", folder / name)


def part_name(number: int) -> str:
    """Return the name of a part, by which parts sort in their order."""
    return f"{number:012}"


def home_at(text: str) -> Place:
    """Return the home that ``$TOPICOPS_HOME`` names: a folder, or a URL. Raises ``UsageError``."""
    if "://" not in text:
        return Path(text).absolute()
    url = urlsplit(text)
    if url.scheme != "file":
        return StoredPath(open_bucket(text))
    if url.netloc not in ("", "localhost") or not url.path:
        raise UsageError(f"TOPICOPS_HOME={text}: write file:///path, with three slashes")
    return Path(unquote(url.path))


def place_of_text(home: Place, text: str) -> Place:
    """Return the place of this home, or any of its places, that ``str`` gave the text for."""
    return Path(text) if isinstance(home, Path) else home.named(text)


def written_at(place: Place) -> float:
    """Return when it was last written, in seconds since 1970, by the clock of the disk or store. Raises ``OSError``."""
    return place.stat().st_mtime if isinstance(place, Path) else place.bucket.head(place.key).timestamp()


def state_folder() -> Path:
    """``$XDG_STATE_HOME/topicops``, else ``~/.local/state/topicops``; the same whatever the working folder is."""
    named = os.environ.get("XDG_STATE_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "topicops"
    try:
        return Path.home() / ".local" / "state" / "topicops"
    except RuntimeError as error:
        raise ArtifactError("this account has no home folder for leases and caches; set XDG_STATE_HOME") from error


def scratch_folder(place: Place) -> Path:
    """Return the folder of this host for what needs real files: the place itself, unless it is in a store.

    What later tasks of another host need is not kept here.
    """
    if isinstance(place, Path):
        return place
    return state_folder() / "homes" / sha256(place.bucket.url.encode()).hexdigest()[:16] / place.key


def home_problem(home: Place) -> str:
    """Return why a home in a store cannot be used; empty if it can. Writes an object there, and removes it."""
    if isinstance(home, Path):
        return ""
    try:
        home.bucket.require_conditions()
    except OSError as error:
        return f"{home}: {error.strerror or error}"
    return ""


def remove_folder(place: Place) -> None:
    """Remove a folder with all in it, as far as that is possible."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    shutil.rmtree(scratch_folder(place), ignore_errors=True)
    with suppress(OSError):
        place.bucket.remove(*(key for key, _ in place.bucket.keys(place.key)))


def contents(objects: Sequence[StoredPath]) -> Iterator[bytes]:
    """Yield what they hold, in this order; empty for one that is missing. They are asked for many at a time."""
    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        for start in range(0, len(objects), READ_AT_ONCE):
            yield from pool.map(_content, objects[start : start + READ_AT_ONCE])


def _content(place: StoredPath) -> bytes:
    try:
        return place.bucket.read(place.key).content
    except FileNotFoundError:
        return b""


class StoredLines:
    """Adds lines to what grows in a store: each call makes one object, whose number nobody else can take.

    Another writer of the same journal has taken it over: then nothing can be added here any more.
    """

    def __init__(self, path: StoredPath) -> None:
        self.path = path
        self._next: int | None = None

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines without their ends. Raises ``OSError``: ``FileExistsError`` where another writer has added some."""
        if self._next is None:
            *_, last = [0, *(int(part.name) for part in self.path.parts())]
            self._next = last + 1
        part = self.path / part_name(self._next)
        try:
            self.path.bucket.create(part.key, b"".join(line + b"\n" for line in lines))
        except FileExistsError as error:
            raise FileExistsError(errno.EEXIST, "another process has taken it over", str(part)) from error
        self._next += 1
