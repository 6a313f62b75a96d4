"""The mark of a home: ``<home>/home.json``, by which two folders differ whatever their paths are."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from topicops.edges.durable_files import create_atomically, write_atomically
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.edges.home.memory_file import MemoryFile

FORMAT_VERSION = "1.0"
NAME = "home.json"


class _HomeMark(msgspec.Struct):
    format_version: str
    token: str
    """Random."""


def read_mark(home: Path) -> str | None:
    """The token of a home; None if it has none. Raises ``ArtifactError``."""
    found = MemoryFile(home / NAME, _HomeMark).read()
    return found.token if found else None


def mark_of(home: Path) -> str:
    """The token of a home; the first call makes it, and later ones never change it. Raises ``ArtifactError``."""
    token = read_mark(home)
    if token is not None:
        return token
    path, content = home / NAME, msgspec.json.encode(_HomeMark(FORMAT_VERSION, secrets.token_hex(16)))
    with as_artifact_error(path, "cannot be written", "; check the disk"):
        try:
            create_atomically(path, content)
        except FileExistsError:
            pass  # another process was faster, and its token counts
        except OSError:  # a file system without hard links
            write_atomically(path, content)
    return read_mark(home) or ""
