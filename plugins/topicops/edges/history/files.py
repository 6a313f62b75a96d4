"""The files of one table of one environment, and which of them count.

``day=<day>/<run>.parquet`` has the rows of one run, ``day=<last day>/+<period>.<token>.parquet`` those of a day or a
month that is over. A compacted file names its inputs in its footer, with their times of writing: an input that is still
there counts no more, and a file that a later try of a run put in its place does.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from topicops.edges.history.schemas import FORMAT_KEY, FORMAT_VERSION
from topicops.edges.home.artifacts import folders_in
from topicops.model.printable import first_line

INPUTS_KEY = b"topicops.history.inputs"
"""Where a compacted file's footer has its inputs: JSON, by ``zlib``, in base64."""
COMPACTED = "+"
"""How the name of a compacted file begins; a run's name never does."""
_MAJOR = FORMAT_VERSION.partition(".")[0]
_DAY = "day="


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """One Parquet file of one table."""

    path: Path
    day: str
    """``2026-10-31``: of the run, or the last one of a compacted period."""
    mtime_ns: int

    @property
    def is_compacted(self) -> bool:
        return self.path.name.startswith(COMPACTED)

    @property
    def name(self) -> str:
        """Its path below the table's folder of the environment."""
        return f"{_DAY}{self.day}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class CountedFiles:
    """What is in a folder: every row of the history is in exactly one file of ``counted``."""

    counted: tuple[HistoryFile, ...]
    covered: Mapping[HistoryFile, Sequence[HistoryFile]]
    """Inputs that are still there, by the compacted file that has their rows."""
    warnings: tuple[str, ...]
    """A sentence for each file that cannot be read."""


def counted_files(folder: Path) -> CountedFiles:
    """The files of a table that count. A file that is damaged, or of another program, is named and left out."""
    files = sorted(_files_in(folder), key=lambda file: not file.is_compacted)
    inputs: dict[HistoryFile, Mapping[str, int]] = {}
    covered: set[tuple[str, int]] = set()
    warnings: list[str] = []
    for file in files:
        if not file.is_compacted and (file.name, file.mtime_ns) in covered:
            continue
        try:
            inputs[file] = _inputs_of(file.path)
            covered |= inputs[file].items()
        except FileNotFoundError:  # compacted, and removed, since the folder was listed: see `history.reading`
            raise
        except (OSError, pa.ArrowException, ValueError, zlib.error) as error:
            warnings.append(f"{file.path}: left out: {first_line(error)}; restore the file or move it away")
    return CountedFiles(
        counted=tuple(file for file in inputs if (file.name, file.mtime_ns) not in covered),
        covered={made: _still_there(files, names) for made, names in inputs.items() if names},
        warnings=tuple(warnings),
    )


def compacted_metadata(inputs: Sequence[HistoryFile]) -> dict[bytes, bytes]:
    """What the footer of a compacted file says beside the version."""
    text = json.dumps({file.name: file.mtime_ns for file in inputs}, separators=(",", ":"))
    return {INPUTS_KEY: base64.b64encode(zlib.compress(text.encode(), 9))}


def _still_there(files: Sequence[HistoryFile], names: Mapping[str, int]) -> tuple[HistoryFile, ...]:
    return tuple(file for file in files if names.get(file.name) == file.mtime_ns)


def _files_in(folder: Path) -> Iterator[HistoryFile]:
    for day in folders_in(folder):
        if day.name.startswith(_DAY):
            with os.scandir(day) as entries:
                for entry in entries:
                    if entry.name.endswith(".parquet") and not entry.name.startswith("."):
                        yield HistoryFile(Path(entry), day.name.removeprefix(_DAY), entry.stat().st_mtime_ns)


def _inputs_of(path: Path) -> Mapping[str, int]:
    """The inputs that the footer names; none in the file of one run.

    Raises:
        ValueError: Another program wrote the file, or a topicops with other columns.
    """
    metadata: Mapping[bytes, bytes] = pq.read_metadata(path).metadata or {}
    version = metadata.get(FORMAT_KEY, b"").decode("utf-8", "replace")
    if version.partition(".")[0] != _MAJOR:
        raise ValueError(f"its format is {version or 'not of topicops'}, and this topicops knows {FORMAT_VERSION}")
    if INPUTS_KEY not in metadata:
        return {}
    found = json.loads(zlib.decompress(base64.b64decode(metadata[INPUTS_KEY])))
    return {str(name): int(mtime_ns) for name, mtime_ns in found.items()}
