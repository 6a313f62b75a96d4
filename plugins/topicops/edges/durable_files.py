"""Every write that must survive a crash: files that replace others, files that grow by whole lines, and errors."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from topicops.edges.places import Place, StoredLines
from topicops.model.errors import ArtifactError


def write_atomically(
    path: Place, content: bytes, *, mode: int = 0o644, is_durable: bool = True, may_be_old: bool = False
) -> None:
    """Replace a file, or make it with its folders: a reader sees the old content or the new one.

    Args:
        is_durable: Return only when file and folder are on the disk; else a power cut may lose both contents.
        may_be_old: Do not wait for the folder: a power cut may bring the old content back, whole.

    Raises ``OSError``: the old content stays; in a store that does not answer, nobody knows which one.
    """
    if not isinstance(path, Path):
        path.bucket.write(path.key, content)
        return
    make_folder(path.parent)
    with _temporary(path, content, mode=mode, is_durable=is_durable) as temporary:
        temporary.replace(path)
    if is_durable and not may_be_old:
        sync_folder(path.parent)


def create_atomically(path: Place, content: bytes) -> None:
    """Make a file, with its folders and the user's own permissions. Raises ``FileExistsError``, never replaces one."""
    if not isinstance(path, Path):
        path.bucket.create(path.key, content)
        return
    make_folder(path.parent)
    with _temporary(path, content, mode=None, is_durable=True) as temporary:
        os.link(temporary, path)  # unlike a rename, this fails if the file exists by now
    sync_folder(path.parent)


@contextmanager
def _temporary(path: Path, content: bytes, *, mode: int | None, is_durable: bool) -> Iterator[Path]:
    """Write a new file beside ``path``; no reader of specs takes it for one. It is removed unless it was renamed."""
    temporary = path.with_name(f".topicops-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            if is_durable:
                os.fsync(handle)
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def line_appender(path: Place) -> Callable[[Sequence[bytes]], None]:
    """Return ``append_lines`` of this file, or of what grows in a store; it is for one writer."""
    return partial(append_lines, path) if isinstance(path, Path) else StoredLines(path).append


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Add lines, given without their line ends, to a file that only grows, and wait for the disk.

    The first append makes the file, with its folders. If a crash left half a line at its end, that line is ended first.

    Raises ``OSError``: then none of the lines is in the file, as far as the disk lets that be undone.
    """
    is_new = not path.exists()
    if is_new:
        make_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        append_whole(handle, b"".join([b"\n" if is_torn else b"", *(line + b"\n" for line in lines)]))
    finally:
        os.close(handle)
    if is_new:
        sync_folder(path.parent)


def append_whole(handle: int, text: bytes) -> None:
    """Append all of the text and wait for the disk. Raises ``OSError``; then the part that was written is cut off."""
    size, rest = os.lseek(handle, 0, os.SEEK_END), memoryview(text)
    try:
        while rest:  # a disk that fills up takes a part first
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def make_folder(folder: Place) -> None:
    """Make a folder with its parents, and wait until a power cut can lose none of them; a store has no folders."""
    if not isinstance(folder, Path):
        return
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the folder's names are on the disk; a power cut may lose a new name although its file is safe."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def as_artifact_error(path: Place, problem: str, advice: str = "") -> Iterator[None]:
    """Raise an ``OSError`` of the block as ``ArtifactError``: ``<path>: <problem>: <what the disk says><advice>``."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path}: {problem}: {error.strerror or error}{advice}") from error
