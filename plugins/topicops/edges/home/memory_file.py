"""A small JSON file that one run writes and the next one reads."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.model.errors import ArtifactError
from topicops.model.json_errors import JsonError, json_errors
from topicops.model.json_types import known

T = TypeVar("T")


class MemoryFile(Generic[T]):
    """One value in one file; every problem is an ``ArtifactError`` with the path."""

    def __init__(self, path: Path, value_type: type[T]) -> None:
        self.path = path
        self._value_type = value_type

    def read(self) -> T | None:
        """The value of the last write; None before the first one."""
        try:
            data = self.path.read_bytes()
            with json_errors():
                return msgspec.json.decode(data, type=known(self._value_type))
        except FileNotFoundError:
            return None
        except (OSError, JsonError) as error:
            raise ArtifactError(f"{self.path}: cannot be read ({error}); repair or remove it") from error

    def write(self, value: T) -> None:
        """Replace the value; it is on the disk when this returns."""
        with as_artifact_error(self.path, "cannot be written", "; check the disk"):
            write_atomically(self.path, msgspec.json.encode(value))

    def remove(self) -> None:
        """Forget the value; the next ``read`` gives None."""
        with as_artifact_error(self.path, "cannot be removed", "; remove it by hand"):
            self.path.unlink(missing_ok=True)


def cluster_file(folder: Path, cluster_id: str) -> Path:
    """``<folder>/<cluster id>.json``; the id comes from outside, so what could leave the folder is percent-encoded."""
    return folder / f"{quote(cluster_id, safe='')}.json"
