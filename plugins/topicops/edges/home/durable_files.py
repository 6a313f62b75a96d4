"""Files that grow by whole lines, which are on the disk before anybody acts on them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


class DurableLines:
    """A file and the end of it; made, with its folders, by the first append."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_whole = False
        """Known to end with a whole line."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines, given without their ends, and wait for the disk.

        A line that a crash tore off before is closed first, so that it spoils no other.

        Raises:
            OSError: None of the lines is in the file, as far as the disk lets that be undone.

        """
        is_new = not self._is_whole and not self._path.exists()
        if is_new:
            make_folder(self._path.parent)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._append(handle, b"".join(line + b"\n" for line in lines))
        finally:
            os.close(handle)
        if is_new:
            sync_folder(self._path.parent)
        self._is_whole = True

    def _append(self, handle: int, text: bytes) -> None:
        size = os.lseek(handle, 0, os.SEEK_END)
        if not self._is_whole and size and os.pread(handle, 1, size - 1) != b"\n":
            text = b"\n" + text
        self._is_whole = False  # until all of it is there
        append_whole(handle, text)


def append_whole(handle: int, text: bytes) -> None:
    """All of it, on the disk; raises ``OSError`` with none of it there, as far as the disk lets that be undone."""
    size = os.lseek(handle, 0, os.SEEK_END)
    try:
        _write_all(handle, text)
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def _write_all(handle: int, text: bytes) -> None:
    """All of it; a disk that fills up takes a part first."""
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(handle, rest) :]


def make_folder(folder: Path) -> None:
    """Make it with its parents, so that none of them is lost in a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Without it a new name may be lost in a power cut although the file's content is safe."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
