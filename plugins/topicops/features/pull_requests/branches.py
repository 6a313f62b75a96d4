"""The files of a pull request, read from git: those of base and merge, and the problems that the branch brings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.open_files import OWNERS_FILE, environment_files, folder_below, shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.features.pull_requests.edges import git_trees
from topicops.flow.runs.run import now
from topicops.flow.spec_files import validate_files
from topicops.model.errors import UsageError
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.diagnostics import Diagnostic, Location
from topicops.steps.specs.needed import Needs, no_topic
from topicops.steps.specs.validate import Validated, validate, with_folder_named


def is_policy(path: str) -> bool:
    """Say whether the file, named relative to the folder of topics, is an environment, a profile or the owners."""
    return path.startswith(("environments/", "profiles/")) or path == OWNERS_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Copies of the topics of a pull request, in folders that last as long as the ``with`` block."""

    folder: str
    """Path of the folder of topics in the repository: ``topics``."""
    base_commit: str
    head_commit: str
    before: Path
    after: Path
    """Topics as the merge would have them; policy (environments, profiles, owners) is the base branch's."""
    after_with_policy: Path
    """Topics and policy as the merge would have them."""
    changed: tuple[str, ...]
    """Files that the merge would change, relative to the folder of topics, sorted; both names of a renamed one."""

    @property
    def topic_files(self) -> tuple[str, ...]:
        """Changed ones, named from the repository's root."""
        return tuple(f"{self.folder}/{p}" for p in self.changed if p.endswith(".yaml") and not is_policy(p))

    @property
    def policy_files(self) -> tuple[str, ...]:
        return tuple(f"{self.folder}/{path}" for path in self.changed if is_policy(path))

    @property
    def environments(self) -> tuple[str, ...]:
        """Environments of the base branch."""
        return environment_files(self.before) if self.before.is_dir() else ()

    def desired(self, topics: Path, environment: str) -> Desired | None:
        """Read what the valid files of this copy want. None means that the environment itself cannot be read."""
        return self.judged(topics, environment, needs=no_topic).desired

    def judged(self, topics: Path, environment: str, *, needs: Needs) -> Validated:
        validated = validate(read_tree(topics), environment=environment, now=now(), needs=needs)
        return with_folder_named(validated, read=shown_folder(topics), named=f"{self.folder}/")

    def named_as_in_git(self, text: str) -> str:
        """Call the copies' folders in a message as the repository calls them."""
        for copy in (self.after_with_policy, self.after, self.before):
            text = text.replace(shown_folder(copy), f"{self.folder}/").replace(str(copy), self.folder)
        return text


@contextmanager
def open_branches(topics: Path, *, base: str, head: str, merge: bool = True) -> Iterator[Branches]:
    """Read both sides of a pull request from git's store; nothing is checked out.

    Args:
        topics: The folder of topics in a clone that has both commits; its place counts, not its files of now.
        merge: False means that ``head`` holds ``base`` already, as after the merge.

    Raises:
        UsageError: A commit or the folder is missing, the two conflict, or git has paths that no work tree may have.
    """
    repository = _inside_repository(topics)
    base_commit, head_commit = git_trees.commit_id(repository, base), git_trees.commit_id(repository, head)
    folder = folder_in_repository(topics)
    tree = git_trees.merged_tree(repository, base_commit, head_commit) if merge else head_commit
    before, merged = (git_trees.stored_files(repository, name, folder) for name in (base_commit, tree))
    if not merged:
        raise UsageError(f"{folder}: no such folder in {head_commit[:12]}; name the folder of topics with --topics")
    if below := folder_below(merged):
        raise UsageError(f"{folder}: this folder is above the topics; did you mean --topics {folder}/{below}?")
    if folder_below(before):
        before = {}  # the branch moves the topics here
    specs = {path: file for path, file in merged.items() if not is_policy(path)}
    policy = {path: file for path, file in before.items() if is_policy(path)}
    with TemporaryDirectory(prefix="topicops-") as scratch:
        place = Path(scratch)
        git_trees.write_files(repository, before, place / "before")
        git_trees.write_files(repository, {**specs, **policy}, place / "after")
        git_trees.write_files(repository, merged, place / "after-with-policy")
        yield Branches(
            folder=folder,
            base_commit=base_commit,
            head_commit=head_commit,
            before=place / "before",
            after=place / "after",
            after_with_policy=place / "after-with-policy",
            changed=tuple(sorted(p for p in before.keys() | merged.keys() if before.get(p) != merged.get(p))),
        )


def _inside_repository(topics: Path) -> Path:
    """Find a folder in which git finds the repository: the topics may be in its commits alone."""
    place = Path(os.path.abspath(topics))  # noqa: PTH100 - links stay: a person named them
    if (place / ".git").exists():
        return place
    return next(above for above in place.parents if above.is_dir())


def changed_topics(before: Desired, after: Desired) -> tuple[str, ...]:
    """Name the topics that one of the two has, or that the two want differently; places in files do not count."""

    def wanted(topic: DesiredTopic | None) -> DesiredTopic | None:
        return replace(topic, location=Location(""), locations={}) if topic else None

    names = before.topics.keys() | after.topics.keys()
    return tuple(sorted(n for n in names if wanted(before.topics.get(n)) != wanted(after.topics.get(n))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeProblems:
    brought: tuple[Diagnostic, ...]
    """Problems in files that the branch changes, or that the base does not have in the same file and words."""
    old: tuple[Diagnostic, ...]
    """Problems in other files that were there before."""
    files: int


def validate_change(topics: Path, *, since: str) -> ChangeProblems:
    """Judge the files of the work tree, and sort the problems. Raises ``UsageError`` where ``since`` is no commit."""
    found, shown = validate_files(topics, environment=None), shown_folder(topics)
    stored = git_trees.stored_files(topics, git_trees.merge_base_of(topics, since), folder_in_repository(topics))
    with TemporaryDirectory(prefix="topicops-") as scratch:
        before = Path(scratch) / "topics"
        # The folder was above the topics, until the branch moved them.
        git_trees.write_files(topics, {} if folder_below(stored) else stored, before)
        judged = validate(read_tree(before), environment=None, now=now())
        known = {(shown + d.file.removeprefix(shown_folder(before)), d.code, d.summary) for d in judged.diagnostics}
        names = {diagnostic.file.removeprefix(shown) for diagnostic in found.diagnostics}
        changed = {f"{shown}{name}" for name in names if _bytes(before / name) != _bytes(topics / name)}
    brought = tuple(d for d in found.diagnostics if d.file in changed or (d.file, d.code, d.summary) not in known)
    old = tuple(diagnostic for diagnostic in found.diagnostics if diagnostic not in brought)
    return ChangeProblems(brought=brought, old=old, files=found.files)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None
