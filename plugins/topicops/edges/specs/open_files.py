"""Which files there are below ``topics/``, what each must be, and how they are opened with care."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import asdict

from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.specs.diagnostics import Diagnostic, Note, Severity
from topicops.model.specs.document import START, FileKind, Span

LARGEST_FILE = 64 * 1024
ROOM_FOR_MANY = 16
"""A file of exceptions or owners is about many topics, and may be this many times as large."""
OWNERS_FILE = "owners.yaml"
"""Name of the one file of specs that is in no folder below ``topics``."""

_ENVIRONMENTS = "environments"
LEGAL_STEM = re.compile(r"[A-Za-z0-9._-]+")
_IGNORED = re.compile(r"\..*|.*\.md", re.IGNORECASE)
"""Files that are surely not specs; a dot file that ends in ``.yaml`` is one all the same."""


class ReadingError(Exception):
    """The first problem of a file, at which its reading stops; its name is added later, by ``diagnostic``."""

    def __init__(
        self, code: Code, span: Span, summary: str, remedy: str = "", *, other: tuple[Span, str] | None = None
    ) -> None:
        """Take a second place of the file, ``other``, and what is written there."""
        super().__init__(summary)
        self.code, self.span, self.summary, self.remedy, self.other = code, span, summary, remedy, other

    def diagnostic(self, file: str) -> Diagnostic:
        note = self.other and Note(file=file, text=self.other[1], **asdict(self.other[0]))
        return Diagnostic(
            code=self.code,
            severity=Severity.ERROR,
            file=file,
            summary=self.summary,
            help=self.remedy,
            note=note,
            **asdict(self.span),
        )


def require_folder(topics: Path) -> None:
    """Raises ``UsageError`` unless there is such a folder, and for the folder above a folder of topics."""
    if not topics.is_dir():
        raise UsageError(
            f"{topics}: no such folder, so there are no topics here yet: start with `topicops init`, or name the "
            "folder that holds the topics, as in: topicops validate topics"
        )
    if not (topics / _ENVIRONMENTS).is_dir() and (topics / "topics" / _ENVIRONMENTS).is_dir():
        raise UsageError(f"{topics}: this folder is above the topics; did you mean {shown_folder(topics)}topics?")


def folder_below(files: Iterable[str]) -> str | None:
    """Return the folder with the environments, among paths with ``/``; None if these are paths inside that folder."""
    holders = {path.rpartition("/")[0] for path in files if path.endswith(".yaml")}
    found = sorted(holder for holder in holders if holder.rpartition("/")[2] == _ENVIRONMENTS)
    return None if not found or _ENVIRONMENTS in found else found[0].rpartition("/")[0]


def environment_files(topics: Path) -> tuple[str, ...]:
    """Return the environments that have a file, by its name, in order; no file is opened."""
    # A dot: exceptions and other parts of an environment.
    return tuple(sorted(path.stem for path in (topics / _ENVIRONMENTS).glob("*.yaml") if "." not in path.stem))


def count_topic_files(topics: Path) -> int:
    """Return how many files of topics there are, by their names; no file is opened."""
    return sum(path.parent.name not in ("environments", "profiles") for path in topics.glob("*/*.yaml"))


class Place(NamedTuple):
    """Something below ``topics`` that is no folder of specs."""

    path: str
    """Path with which to open it."""
    file: str
    """Relative to the working folder, with ``/``."""
    folders: tuple[str, ...]
    """Folders below ``topics`` that lead to it."""
    name: str
    looks_regular: bool
    """Whether its folder lists it as a regular file."""


def walk(topics: Path) -> Iterator[Place]:
    """Yield everything below ``topics`` that is no folder, and folders that cannot be listed or are other repositories.

    Links are not followed, and folders whose names begin with a dot are passed over.
    """
    waiting = [(str(topics), shown_folder(topics), tuple[str, ...]())]
    while waiting:
        path, before, folders = waiting.pop()
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError:
            entries = None
        if entries is None or (folders and any(entry.name == ".git" for entry in entries)):
            yield Place(path, before.rstrip("/") or ".", folders[:-1], folders[-1] if folders else "", False)
            continue
        for entry in entries:
            name = entry.name
            if name.endswith(".yaml"):
                yield Place(entry.path, before + name, folders, name, entry.is_file(follow_symlinks=False))
            elif entry.is_dir(follow_symlinks=False) and not name.startswith("."):
                waiting.append((entry.path, f"{before}{name}/", (*folders, name)))
            elif not _IGNORED.fullmatch(name):
                yield Place(entry.path, before + name, folders, name, False)


def shown_folder(topics: Path) -> str:
    """Return what the names of its files begin with: relative to the working folder, ``topics/`` or empty."""
    shown = os.path.relpath(topics).replace(os.sep, "/")
    return "" if shown == "." else f"{shown}/"


def room_of(kind: FileKind) -> int:
    """Return how many times as large as others a file of this kind may be."""
    return ROOM_FOR_MANY if kind in ("Exceptions", "Owners") else 1


def kind_and_stem(folders: Sequence[str], name: str) -> tuple[FileKind, str]:
    stem = name.removesuffix(".yaml")
    if name == OWNERS_FILE and not folders:
        return "Owners", stem
    match folders[0] if folders else "":
        case "profiles":
            return "Profile", stem
        case "environments" if stem.endswith(".exceptions"):
            return "Exceptions", stem.removesuffix(".exceptions")
        case "environments":
            return "Environment", stem
        case _:
            return "Topic", stem


def check_place(place: Place, kind: FileKind, stem: str) -> None:
    name = place.name
    if not place.looks_regular and os.path.isdir(place.path):  # noqa: PTH112, since a path may be too long to ask
        is_link = os.path.islink(place.path)  # noqa: PTH114
        if not is_link and os.path.exists(f"{place.path}/.git"):  # noqa: PTH110
            raise _not_regular("a repository of its own, or a submodule: no commit of this one has its files")
        raise _not_regular("a link, and links are not followed" if is_link else "a folder that is no domain")
    if not name.endswith(".yaml"):
        way_out = "rename it, or move it elsewhere"
        raise ReadingError(Code.WRONG_EXTENSION, START, f"{name} does not end in .yaml", way_out)
    if len(place.folders) != 1 and kind != "Owners":
        where = "/".join((*place.folders, name))
        what = f"{where} is not directly in a folder of its kind"
        raise ReadingError(Code.MISPLACED_FILE, START, what, "use <domain>/<topic name>.yaml")
    if not LEGAL_STEM.fullmatch(stem) or (kind in ("Environment", "Exceptions") and "." in stem):
        what = "the file's name holds characters that no name may have"
        way_out = "only letters, digits, dot, underscore and dash; an environment has no dot"
        raise ReadingError(Code.MISPLACED_FILE, START, what, way_out)


_WITH_CARE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""A pipe or device opened this way neither blocks nor is read."""


def open_regular(path: str | Path, *, room: int = 1) -> bytes:
    """Return the bytes of a regular file of at most ``room`` times 64 KiB; no link is followed, no pipe waited for."""
    try:
        descriptor = os.open(path, _WITH_CARE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular("not a regular file")
            return _all_of(descriptor, status.st_size, room * LARGEST_FILE)
        finally:
            os.close(descriptor)
    except OSError as error:
        is_link = error.errno == errno.ELOOP
        why = "a link, and links are not followed" if is_link else f"cannot be read: {error.strerror}"
        raise _not_regular(why) from error


def _all_of(descriptor: int, size: int, largest: int) -> bytes:
    data = os.read(descriptor, min(size, largest) + 1)
    if 0 < len(data) == size <= largest:
        return data
    while len(data) <= largest:
        part = os.read(descriptor, largest + 1 - len(data))
        if not part:
            return data
        data += part
    way_out = "one topic a file; shorten the comments"
    raise ReadingError(Code.FILE_TOO_LARGE, START, f"more than {largest:,} bytes", way_out)


def _not_regular(why: str) -> ReadingError:
    return ReadingError(Code.UNREADABLE_FILE, START, why, "put a readable, regular file here")


def source_lines(file: Path) -> list[str]:
    """Return the lines of a file, for showing problems in their places; none where it cannot be read."""
    try:
        text = open_regular(file, room=ROOM_FOR_MANY).decode("utf-8", "replace")
    except ReadingError:
        return []
    return [line.rstrip("\r") for line in text.split("\n")]


def regular_text(file: Path, *, room: int = 1) -> str | None:
    """Return the whole of a file; None unless it is regular, readable UTF-8 within ``room`` times the limit."""
    try:
        return open_regular(file, room=room).decode()
    except (ReadingError, UnicodeDecodeError):
        return None
