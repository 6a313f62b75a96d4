"""Judge the files of a branch: loud about what the branch brings, and quiet about what was wrong before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.git_trees import merge_base_of, stored_files, write_files
from topicops.edges.specs.open_files import folder_below, shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.flow.runs.run import now
from topicops.flow.spec_files import validate_files
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.pull_requests.touched import new_diagnostics
from topicops.steps.specs.validate import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeProblems:
    """What is wrong with the files of a branch."""

    brought: tuple[Diagnostic, ...]
    """In files that the branch changes, or new since the base."""
    old: tuple[Diagnostic, ...]
    """In other files, and wrong before."""
    files: int
    """How many were read."""


def validate_change(topics: Path, *, since: str) -> ChangeProblems:
    """Judge all files of the work tree, and sort the problems by who brought them.

    Args:
        since: Name of a commit of the base branch; what counts is where the branch began.

    Raises:
        UsageError: There is no such commit or folder.
    """
    found = validate_files(topics, environment=None)
    base = merge_base_of(topics, since)
    folder = folder_in_repository(topics)
    stored = stored_files(topics, base, folder)
    with TemporaryDirectory(prefix="topicops-") as scratch:
        before = Path(scratch) / "topics"
        write_files(topics, {} if folder_below(stored) else stored, before)  # above the topics, until it moved them
        known = _problems_of(before, shown_folder(topics))
        changed = frozenset(_changed_files(found.diagnostics, before, topics))
    brought = new_diagnostics(known, found.diagnostics, changed=changed)
    old = tuple(diagnostic for diagnostic in found.diagnostics if diagnostic not in brought)
    return ChangeProblems(brought=brought, old=old, files=found.files)


def _problems_of(before: Path, named: str) -> tuple[Diagnostic, ...]:
    """Of the base, with its files named as those of the work tree are."""
    shown = shown_folder(before)
    judged = validate(read_tree(before), environment=None, now=now())
    return tuple(replace(d, file=named + d.file.removeprefix(shown)) for d in judged.diagnostics)


def _changed_files(diagnostics: tuple[Diagnostic, ...], before: Path, topics: Path) -> Iterator[str]:
    """Files with a problem that have other bytes than in the base, or are new."""
    named = shown_folder(topics)
    for file in {diagnostic.file for diagnostic in diagnostics}:
        if _bytes(before / file.removeprefix(named)) != _bytes(topics / file.removeprefix(named)):
            yield file


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None
