"""Edits that diagnostics propose; each is tried on the specs before it is shown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree, nodes
from topicops.steps.specs.rules.name_clashes import skeleton
from topicops.steps.specs.validate import validate

Edited = Callable[[Diagnostic], Document | None]
"""The file of a diagnostic as it would be after the edit; None where it could not be read."""

MOST_NODES = 4_000
"""How many nodes are validated to try edits, beside twice those of the tree: trying may take as long as validating."""

_Problem = tuple[str, str, str]


class TriedFixes(NamedTuple):
    """Diagnostics of which every edit that is left was tried."""

    diagnostics: tuple[Diagnostic, ...]
    untried: int = 0
    """How many edits were left out because trying all of them takes long."""


def with_sure_fixes(
    diagnostics: Iterable[Diagnostic],
    tree: Tree,
    edited: Edited,
    *,
    environment: str | None,
    now: datetime,
    most_nodes: int = MOST_NODES,
) -> TriedFixes:
    """The same diagnostics; an edit is left out if the problem would remain or the edit would cause another error.

    Args:
        most_nodes: Edits that come after so many validated nodes are left out untried.
    """
    trial = _Trial(tree, edited, environment, now, most_nodes)
    return TriedFixes(tuple(map(trial.tried, diagnostics)), trial.untried)


class _Trial:
    """Tries edits one by one, each on the files as they are."""

    def __init__(self, tree: Tree, edited: Edited, environment: str | None, now: datetime, most_nodes: int) -> None:
        self._affected = _Affected(tree)
        self._edited, self._environment, self._now = edited, environment, now
        self._nodes_of = {document.file: nodes(document.root) for document in tree.documents}
        self._left = most_nodes + 2 * sum(self._nodes_of.values())
        self._errors_before: dict[tuple[str, ...], Counter[_Problem]] = {}
        self.untried = 0

    def tried(self, diagnostic: Diagnostic) -> Diagnostic:
        """The diagnostic, without an edit that does not help or is not tried."""
        if diagnostic.fix is None and diagnostic.rename_to is None:
            return diagnostic
        return diagnostic if self._helps(diagnostic) else replace(diagnostic, fix=None, rename_to=None)

    def _helps(self, diagnostic: Diagnostic) -> bool:
        before = self._affected.by(diagnostic.file)
        if not self._may_validate(before):
            self.untried += 1
            return False
        after = self._edited(diagnostic)
        if after is None:
            return False
        others = tuple(document for document in before if document.file != diagnostic.file)
        kept = self._known_errors(before) - Counter([_problem(diagnostic)])
        return not self._errors((*others, after)) - kept

    def _may_validate(self, documents: Sequence[Document]) -> bool:
        """Whether the nodes of ``documents`` may still be validated; takes them off what is left."""
        environments = sum(document.kind == "Environment" for document in documents) if self._environment is None else 1
        self._left -= max(1, environments) * sum(self._nodes_of[document.file] for document in documents)
        return self._left >= 0

    def _known_errors(self, documents: Sequence[Document]) -> Counter[_Problem]:
        """The errors of files as they are, which several edits are compared with."""
        files = tuple(document.file for document in documents)
        if files not in self._errors_before:
            self._errors_before[files] = self._errors(documents)
        return self._errors_before[files]

    def _errors(self, documents: Sequence[Document]) -> Counter[_Problem]:
        answer = validate(Tree(documents=tuple(documents)), environment=self._environment, now=self._now)
        return Counter(_problem(diagnostic) for diagnostic in answer.diagnostics if diagnostic.is_error)


def _problem(diagnostic: Diagnostic) -> _Problem:
    """Without its place, because an edit above it moves the place."""
    return diagnostic.file, diagnostic.code, diagnostic.summary


class _Affected:
    """The documents whose diagnostics an edit of a file can change."""

    def __init__(self, tree: Tree) -> None:
        self._all = tree.documents
        self._kinds = {document.file: document for document in tree.documents}
        self._shared = tuple(document for document in tree.documents if document.kind != "Topic")
        self._alike = _by_skeleton(tree.documents)

    def by(self, file: str) -> tuple[Document, ...]:
        """For a topic: itself, topics with similar names, and all files that are no topics; else all documents."""
        document = self._kinds.get(file)
        if document is None or document.kind != "Topic":
            return self._all
        return (*self._shared, *self._alike[skeleton(document.stem)])


def _by_skeleton(documents: Iterable[Document]) -> Mapping[str, list[Document]]:
    groups: defaultdict[str, list[Document]] = defaultdict(list)
    for document in documents:
        if document.kind == "Topic":
            groups[skeleton(document.stem)].append(document)
    return groups
