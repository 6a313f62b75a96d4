"""The spec files that a run reads, and of which commit they are.

A run may be pinned to a commit, and git's history must not be rewritten during a run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from topicops.edges.specs.git import checkout_of, is_in_history, name_in_repository
from topicops.model.errors import MovedFilesError
from topicops.model.memory import gc_paused
from topicops.model.plans.plan import ChangeSet
from topicops.model.ports import Clock
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment

if TYPE_CHECKING:
    from topicops.model.specs.diagnostics import Diagnostic
    from topicops.steps.specs.needed import Needs
    from topicops.steps.specs.validate import Validated

T = TypeVar("T")
logger = logging.getLogger(__name__)

POLL_S = 2.0
MOST_READINGS = 5
"""Most readings of files that change while they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFiles:
    """The folder of topics, and the environment that is read from it."""

    topics: Path
    environment: str
    """Name of a file in ``topics/environments/``."""
    version: str | None = None
    """Commit of a folder that git does not know; None means that it is not known."""
    pinned: str | None = None
    """Commit that the files must be of; None means any."""
    named: str | None = None
    """Name of the folder in plans, if it is a copy: ``topics/``. None means its own path."""


@gc_paused()
def read_specs(files: SpecFiles, *, needs: Needs | None = None) -> Validated:
    """Return every file, judged for the environment; places in it are named as a plan names them.

    Args:
        needs: The topics whose files must be valid; None means all.
    """
    from topicops.edges.specs.open_files import shown_folder
    from topicops.edges.specs.reader import read_tree
    from topicops.steps.specs.validate import validate, with_folder_named

    validated = validate(read_tree(files.topics), environment=files.environment, now=Clock().utc(), needs=needs)
    named = name_in_repository(files.topics) if files.named is None else files.named
    return with_folder_named(validated, read=shown_folder(files.topics), named=named)


def read_needed_specs(files: SpecFiles, needs: Needs | None, progress: Callable[[str], None]) -> Validated:
    """Read as ``read_specs``; a line of progress counts the files with errors that are left out."""
    from topicops.steps.specs.needed import left_out_line

    validated = read_specs(files, needs=needs)
    if line := left_out_line(validated.left_out):
        progress(line)
    return validated


def diagnostics_named(topics: Path, found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the problems; files outside the working folder are named from the root of their repository.

    Also in the sentences, which may name another file.
    """
    from topicops.edges.specs.open_files import shown_folder

    read = shown_folder(topics)
    if not read.startswith(("../", "/")):
        return tuple(found)
    named = name_in_repository(topics)

    def of(text: str) -> str:
        return text.replace(read, named)

    return tuple(
        replace(
            each,
            file=of(each.file),
            summary=of(each.summary),
            help=of(each.help),
            note=replace(each.note, file=of(each.note.file), text=of(each.note.text)) if each.note else None,
        )
        for each in found
    )


def commit_notes(topics: Path, environment: Environment, change_set: ChangeSet) -> Iterator[str]:
    """Yield, in class production, that the audit log will not say of which commit these changes are."""
    is_production = environment.spec.cluster.cluster_class == "production"
    if is_production and change_set.changes and change_set.source.commit is None:
        files = named_commit(topics, None)
        yield f"the audit log will name no commit for these changes: the files are of {files}; commit them first"


def commit_of_files(files: SpecFiles) -> str | None:
    """Return the commit whose files the folder holds now, exactly; None means not known.

    The version of a bundle counts only for a folder that git knows nothing about.
    """
    found = checkout_of(files.topics)
    return found.commit if found.is_known else files.version


def require_pinned_files(files: SpecFiles) -> None:
    """Raise ``MovedFilesError`` unless the files are those of the commit that the run is pinned to, if it is."""
    if files.pinned is not None:
        _require(files, commit_of_files(files), since=None)


def read_files(files: SpecFiles, read: Callable[[], T], *, since: str | None = None) -> tuple[T, str | None]:
    """Return what ``read`` gives while the files stay at one commit, and that commit; None means not known.

    Args:
        since: The commit of which an earlier task of this run has read the files.

    Raises ``MovedFilesError``: the files are not of the pinned commit, or git's history was rewritten since that task.
    """
    commit = commit_of_files(files)
    for _ in range(MOST_READINGS):
        _require(files, commit, since)
        value = read()
        before, commit = commit, commit_of_files(files)
        if commit == before:
            return value, commit
        logger.debug("%s changed while it was read; reading it again", files.topics)
    raise MovedFilesError(
        f"the files changed {MOST_READINGS} times while they were read; nothing was sent; start a new run"
    )


def wait_for_pinned_files(
    files: SpecFiles, *, patience_s: float, clock: Clock, progress: Callable[[str], None]
) -> None:
    """Wait until the folder, which somebody else updates, is at the pinned commit.

    Ends as well, for the next check to refuse, when the time is over or when waiting cannot help: the files are of a
    fixed version, or their history has gone past the commit.
    """
    if files.pinned is None or files.version is not None:
        return
    deadline, told = clock.now() + patience_s, ""
    while (commit := commit_of_files(files)) != files.pinned and clock.now() < deadline:
        if commit is not None and is_in_history(files.topics, files.pinned, of=commit):
            return
        found = named_commit(files.topics, commit)
        line = f"The files are of {found}; waiting up to {patience_s:g} s for commit {files.pinned}"
        if line != told:
            progress(line)
        told = line
        clock.sleep(POLL_S)


def _require(files: SpecFiles, commit: str | None, since: str | None) -> None:
    if files.pinned is not None and commit != files.pinned:
        moved = "main was rewritten or moved" if commit else "commit everything below the folder, or let git read it"
        raise MovedFilesError(
            f"the files are of {named_commit(files.topics, commit)}, and this run is pinned to commit {files.pinned}: "
            f"{moved}; nothing was sent; start a new run"
        )
    if since and commit and is_in_history(files.topics, since, of=commit) is False:
        raise MovedFilesError(
            f"the files are of commit {commit}, whose history does not contain commit {since}, of which this run read "
            "them before: git's history was rewritten; nothing more is sent; start a new run"
        )


def named_commit(topics: Path, commit: str | None) -> str:
    """Return ``commit 1a2b…``, or that there is none, with the path because of which."""
    return f"commit {commit}" if commit else f"no known commit ({printable(checkout_of(topics).why_not)})"
