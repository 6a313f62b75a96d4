"""Of which commit the files are: a run may be pinned to one, and nobody may rewrite git's history under a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from topicops.edges.specs.git import checkout_of, is_in_history
from topicops.flow.runs.run import Run, note
from topicops.model.errors import MovedFilesError
from topicops.model.plans.plan import ChangeSet
from topicops.model.ports import Clock
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment

T = TypeVar("T")

POLL_S = 2.0
MOST_READINGS = 5
"""Of files that change while they are read."""


def commit_notes(run: Run, environment: Environment, change_set: ChangeSet) -> Iterator[str]:
    """Yield, in class production, that the audit log will not say of which commit these changes are."""
    is_production = environment.spec.cluster.cluster_class == "production"
    if is_production and change_set.changes and change_set.source.commit is None:
        files = named_commit(run.topics, None)
        yield f"the audit log will name no commit for these changes: the files are of {files}; commit them first"


def commit_of_files(run: Run) -> str | None:
    """The commit whose files the run's folder holds now, exactly; None: not known."""
    return commit_below(run.topics, run.version)


def commit_below(topics: Path, version: str | None) -> str | None:
    """The commit of the files. The bundle's version counts only for a folder that git knows nothing about."""
    found = checkout_of(topics)
    return found.commit if found.is_known else version


def require_pinned_files(run: Run) -> None:
    """Raise ``MovedFilesError`` unless the files are those of the commit that the run is pinned to, if it is."""
    if run.pinned is not None:
        _require(run, commit_of_files(run), since=None)


def read_files(run: Run, read: Callable[[], T], *, since: str | None = None) -> tuple[T, str | None]:
    """What ``read`` gives while the files stay at one commit, and that commit; None: not known.

    Args:
        since: The commit of which an earlier task of this run has read the files.

    Raises:
        MovedFilesError: The files are not of the pinned commit, or git's history was rewritten since that task.
    """
    commit = commit_of_files(run)
    for _ in range(MOST_READINGS):
        _require(run, commit, since)
        value = read()
        before, commit = commit, commit_of_files(run)
        if commit == before:
            return value, commit
        run.progress("The files changed while they were read; reading again")
    raise _refusal(
        run, f"the files changed {MOST_READINGS} times while they were read; nothing was sent; start a new run"
    )


def wait_for_pinned_files(run: Run, *, patience_s: float, clock: Clock) -> None:
    """Wait until the folder, which somebody else updates, is at the pinned commit.

    Ends as well, for the next check to refuse, when the time is over or when waiting cannot help: the files are of a
    fixed version, or their history has gone past the commit.
    """
    if run.pinned is None or run.version is not None:
        return
    deadline, told = clock.now() + patience_s, ""
    while (commit := commit_of_files(run)) != run.pinned and clock.now() < deadline:
        if commit is not None and is_in_history(run.topics, run.pinned, of=commit):
            return
        files = named_commit(run.topics, commit)
        line = f"The files are of {files}; waiting up to {patience_s:g} s for commit {run.pinned}"
        if line != told:
            run.progress(line)
        told = line
        clock.sleep(POLL_S)


def _require(run: Run, commit: str | None, since: str | None) -> None:
    if run.pinned is not None and commit != run.pinned:
        files = named_commit(run.topics, commit)
        moved = "main was rewritten or moved" if commit else "commit everything below the folder, or let git read it"
        raise _refusal(
            run,
            f"the files are of {files}, and this run is pinned to commit {run.pinned}: {moved}; nothing was sent; "
            "start a new run",
        )
    if since and commit and is_in_history(run.topics, since, of=commit) is False:
        raise _refusal(
            run,
            f"the files are of commit {commit}, whose history does not contain commit {since}, of which this run read "
            "them before: git's history was rewritten; nothing more is sent; start a new run",
        )


def _refusal(run: Run, reason: str) -> MovedFilesError:
    """The error; the report has its reason too."""
    note(run, [f"{reason[0].upper()}{reason[1:]}."])
    return MovedFilesError(reason)


def named_commit(topics: Path, commit: str | None) -> str:
    """``commit 1a2b…``, or that there is none, with the path because of which."""
    return f"commit {commit}" if commit else f"no known commit ({printable(checkout_of(topics).why_not)})"
