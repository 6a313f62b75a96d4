"""The files of a pull request, read from git: those of base and merge, and the problems that the branch brings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.open_files import environment_files, folder_below, shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.features.pull_requests.edges.git_trees import (
    StoredFile,
    commit_id,
    merge_base_of,
    merged_tree,
    stored_files,
    write_files,
)
from topicops.features.pull_requests.touched import Claims, is_policy, is_topic_file, new_diagnostics
from topicops.flow.runs.run import now
from topicops.flow.spec_files import validate_files
from topicops.model.errors import UsageError
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Tree
from topicops.steps.specs.needed import Needs, no_topic
from topicops.steps.specs.validate import Validated, validate, view_of, with_folder_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Copies of the topics of a pull request, in folders that last as long as the ``with`` block."""

    folder: str
    """The folder of topics in the repository: ``topics``."""
    base_commit: str
    head_commit: str
    before: Path
    """The topics as the base branch has them."""
    after: Path
    """As the merge would have them; policy (environments, profiles, owners) is the base branch's."""
    after_with_policy: Path
    """As the merge would have them, policy included."""
    changed: tuple[str, ...]
    """Files that the merge would change, relative to the folder of topics, sorted."""

    @property
    def topic_files(self) -> tuple[str, ...]:
        """Changed ones, named from the repository's root."""
        return tuple(f"{self.folder}/{path}" for path in self.changed if is_topic_file(path))

    @property
    def policy_files(self) -> tuple[str, ...]:
        return tuple(f"{self.folder}/{path}" for path in self.changed if is_policy(path))

    @property
    def environments(self) -> tuple[str, ...]:
        """Those of the base branch."""
        return environment_files(self.before) if self.before.is_dir() else ()

    def desired(self, topics: Path, environment: str) -> Desired | None:
        """What the valid files of this copy want; None where the environment itself cannot be read."""
        return self.judged(topics, environment, needs=no_topic).desired

    def judged(self, topics: Path, environment: str, *, needs: Needs) -> Validated:
        validated = validate(read_tree(topics), environment=environment, now=now(), needs=needs)
        return with_folder_named(validated, read=shown_folder(topics), named=f"{self.folder}/")

    def named_as_in_git(self, text: str) -> str:
        """A message with the copies' folders called as the repository calls them."""
        for copy in (self.after_with_policy, self.after, self.before):
            text = text.replace(shown_folder(copy), f"{self.folder}/").replace(str(copy), self.folder)
        return text


@contextmanager
def open_branches(topics: Path, *, base: str, head: str, merge: bool = True) -> Iterator[Branches]:
    """Read both sides of a pull request from git's store; nothing is checked out.

    Args:
        topics: The folder of topics in a clone that has both commits; its place counts, not its files of now.
        base: Any name of a commit.
        merge: False: ``head`` holds ``base`` already, as after the merge.

    Raises:
        UsageError: There is no repository, commit or folder of topics, the two conflict, or git has paths that no
            work tree may have.
    """
    repository = _inside_repository(topics)
    base_commit, head_commit = commit_id(repository, base), commit_id(repository, head)
    folder = folder_in_repository(topics)
    tree = merged_tree(repository, base_commit, head_commit) if merge else head_commit
    before, merged = stored_files(repository, base_commit, folder), stored_files(repository, tree, folder)
    if not merged:
        raise UsageError(f"{folder}: no such folder in {head_commit[:12]}; name the folder of topics with --topics")
    if below := folder_below(merged):
        raise UsageError(f"{folder}: this folder is above the topics; did you mean --topics {folder}/{below}?")
    if folder_below(before):
        before = {}  # the branch moves the topics here
    with TemporaryDirectory(prefix="topicops-") as scratch:
        place = Path(scratch)
        write_files(repository, before, place / "before")
        write_files(repository, _with_policy_of(before, merged), place / "after")
        write_files(repository, merged, place / "after-with-policy")
        yield Branches(
            folder=folder,
            base_commit=base_commit,
            head_commit=head_commit,
            before=place / "before",
            after=place / "after",
            after_with_policy=place / "after-with-policy",
            changed=_changed(before, merged),
        )


def _inside_repository(topics: Path) -> Path:
    """A folder that is there and in which git finds the repository: the topics may be in its commits alone."""
    place = Path(os.path.abspath(topics))  # noqa: PTH100 - links stay: a person named them
    if (place / ".git").exists():
        return place
    return next(above for above in place.parents if above.is_dir())


def _with_policy_of(before: Mapping[str, StoredFile], merged: Mapping[str, StoredFile]) -> dict[str, StoredFile]:
    topics = {path: file for path, file in merged.items() if not is_policy(path)}
    return {**topics, **{path: file for path, file in before.items() if is_policy(path)}}


def _changed(before: Mapping[str, StoredFile], after: Mapping[str, StoredFile]) -> tuple[str, ...]:
    """Both names of a file that was renamed."""
    return tuple(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)))


def claims_on_names(topics: Path) -> Claims:
    """Owners, and the patterns of the names that ``owners.yaml`` gives them."""
    entries = view_of(read_tree(topics), "", now()).owner_entries
    return [(owner, entry.texts("topics")) for entry in entries if (owner := entry.get("owner", str))]


def reviewers_by_owner(topics: Path) -> Mapping[str, tuple[str, ...]]:
    """Logins and teams that ``owners.yaml`` names for each owner; an owner's entries add up."""
    return reviewers_in(read_tree(topics))


def reviewers_in(tree: Tree) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in view_of(tree, "", now()).owner_entries:
        if owner := entry.get("owner", str):
            named = tuple(name.removeprefix("@") for name in entry.texts("reviewers"))
            found[owner] = tuple(dict.fromkeys((*found.get(owner, ()), *named)))
    return found


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
