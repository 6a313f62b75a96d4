"""Which problems stop a command that needs some topics only: those of their files, and of what these files share.

The topics of all other files with errors are left out, as if those files were not there. A missing file deletes
nothing, so neither does a file that is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from topicops.model.printable import plural
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree
from topicops.steps.specs.layers import EnvironmentView, TopicSource

Needs = Callable[[str], bool]
"""Function that says whether a command needs the topic of this name, so that its file must be valid."""


def no_topic(_: str) -> bool:
    """Need no topic: for a command that judges the environment alone, or all topics with valid files."""
    return False


class Problem(NamedTuple):
    """A diagnostic, and whose it is."""

    diagnostic: Diagnostic
    topic: str | None = None
    """The topic that has the problem; None means that the whole file has it."""
    owner: str | None = None
    """The owner whose topics have it together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Topics and files that are left out because of their errors."""

    topics: frozenset[str] = frozenset()
    """Names, also by the names of their files."""
    files: frozenset[str] = frozenset()
    """Files with errors."""


NOTHING_LEFT_OUT = LeftOut()


def left_out_line(left_out: LeftOut) -> str:
    """Say which files with errors a command leaves out, in one sentence; empty if there are none."""
    count = len(left_out.files)
    if not count:
        return ""
    have = "has" if count == 1 else "have"
    return f"{plural(count, 'file')} of other topics {have} errors; `topicops validate` lists them"


def sort_problems(
    problems: Sequence[Problem], tree: Tree, view: EnvironmentView, needs: Needs
) -> tuple[list[Problem], LeftOut]:
    """Return the problems of what is needed, and what the errors of all else leave out."""
    sorter = _Sorter(tree, view, needs)
    left_out = sorter.left_out(problems)
    return [
        found
        for found in problems
        if sorter.stops(found)
        or not (found.diagnostic.is_error or found.topic in left_out.topics or found.diagnostic.file in left_out.files)
    ], left_out


class _Sorter:
    """Knows which files the needed topics share."""

    def __init__(self, tree: Tree, view: EnvironmentView, needs: Needs) -> None:
        self._documents: Mapping[str, Document] = {document.file: document for document in tree.documents}
        self._view = view
        self._needs = needs

    def left_out(self, problems: Iterable[Problem]) -> LeftOut:
        """Return what the errors leave out that do not stop the command."""
        others = [problem for problem in problems if problem.diagnostic.is_error and not self.stops(problem)]
        files = {problem.diagnostic.file for problem in others if problem.topic is None}
        whole = {file for file in files if file in self._documents}
        named = {problem.topic for problem in others if problem.topic is not None}
        profiles = {self._documents[file].stem for file in whole if self._documents[file].kind == "Profile"}
        profiles |= {name for name, profile in self._view.profiles.items() if profile is None}
        topics = [
            topic
            for topic in self._view.topics
            if topic.file in whole or topic.label in named or topic.profile in profiles
        ]
        stems = {self._documents[file].stem for file in whole if self._documents[file].kind == "Topic"}
        return LeftOut(
            topics=frozenset(named | stems | {topic.label for topic in topics}),
            files=frozenset(files | {topic.file for topic in self._view.topics if topic.label in named}),
        )

    def stops(self, problem: Problem) -> bool:
        """Return whether the problem is one of a needed topic, or of what needed topics or the environment share."""
        if problem.topic is not None:
            return self._needs(problem.topic) or problem.diagnostic.file in self._needed_files
        if problem.owner is not None:
            return any(topic.metadata.get("owner", str) == problem.owner for topic in self._needed)
        document = self._documents.get(problem.diagnostic.file)
        if document is None:
            return self._is_needed_place(problem.diagnostic.file)
        match document.kind:
            case "Topic":
                return document.file in self._needed_files
            case "Profile":
                return any(topic.profile == document.stem for topic in self._needed)
            case "Owners":
                return bool(self._needed)
            case _:
                return True

    @cached_property
    def _needed(self) -> tuple[TopicSource, ...]:
        return tuple(t for t in self._view.topics if self._needs(t.label) or self._needs(t.document.stem))

    @cached_property
    def _needed_files(self) -> frozenset[str]:
        unread = {d.file for d in self._documents.values() if d.kind == "Topic" and self._needs(d.stem)}
        return frozenset(unread | {topic.file for topic in self._needed})

    def _is_needed_place(self, file: str) -> bool:
        """Judge a file in no proper place or without ``.yaml`` by its name, which says what it would describe."""
        path = PurePosixPath(file)
        is_shared = path.parent.name == "environments" or path.stem == "owners"
        return self._needs(path.stem) or self._needs(path.name) or (is_shared and bool(self._needed))
