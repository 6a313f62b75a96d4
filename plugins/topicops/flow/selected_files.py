"""The files that a command line names: a folder of specs, or files and domains of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from topicops.edges.repository import is_specs_root, specs_root_of
from topicops.edges.specs.open_files import shown_folder, walk
from topicops.model.errors import UsageError
from topicops.model.specs.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Files of one folder of specs."""

    topics: Path
    """The folder."""
    below: frozenset[str] = frozenset()
    """Its files and domains that are asked for, named as its files are; empty: all."""

    def holds(self, file: str) -> bool:
        return not self.below or file in self.below or file.rpartition("/")[0] in self.below

    def concerns(self, diagnostic: Diagnostic) -> bool:
        """Whether the problem is in one of the files, or between one of them and another."""
        return self.holds(diagnostic.file) or (diagnostic.note is not None and self.holds(diagnostic.note.file))

    def count(self) -> int:
        return sum(self.holds(place.file) for place in walk(self.topics))


def selection_of(paths: Sequence[Path]) -> Selection:
    """What these paths name.

    Raises:
        UsageError: There is no such file or folder, or they are in several folders of specs.
    """
    roots = {_root_of(path) for path in paths}
    if len(roots) > 1:
        named = " and ".join(sorted(map(str, roots)))
        raise UsageError(f"these are files of {named}: name those of one folder of specs at a time")
    (topics,) = roots
    if any(os.path.realpath(path) == os.path.realpath(topics) for path in paths):
        return Selection(topics=topics)
    inside = [os.path.relpath(path, topics).replace(os.sep, "/") for path in paths]
    return Selection(topics=topics, below=frozenset(f"{shown_folder(topics)}{place}" for place in inside))


def _root_of(path: Path) -> Path:
    if not path.exists():
        raise UsageError(
            f"{path}: no such folder or file; name the folder of specs, as in: topicops validate topics, or start with "
            "`topicops init`"
        )
    if is_specs_root(path):
        return path
    if found := specs_root_of(path):
        return Path(os.path.relpath(found))
    return path if path.is_dir() else path.parent.parent
