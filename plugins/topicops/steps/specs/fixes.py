"""Edits that diagnostics propose; each is tried on the specs before it is shown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree
from topicops.steps.specs.rules.name_clashes import skeleton
from topicops.steps.specs.validate import validate

Edited = Callable[[Diagnostic], Document | None]
"""The file of a diagnostic as it would be after the edit; None where it could not be read."""

MOST_VALIDATED = 20_000
"""How many documents are validated to try edits, which takes about a second; later edits are not proposed."""

_Problem = tuple[str, str, str]


def with_sure_fixes(
    diagnostics: Iterable[Diagnostic],
    tree: Tree,
    edited: Edited,
    *,
    environment: str | None,
    now: datetime,
    most_validated: int = MOST_VALIDATED,
) -> tuple[Diagnostic, ...]:
    """The same diagnostics; an edit is left out if the problem would remain or the edit would cause another error."""
    return tuple(_tried(diagnostics, _Affected(tree), edited, environment, now, most_validated))


def _tried(
    diagnostics: Iterable[Diagnostic],
    affected: _Affected,
    edited: Edited,
    environment: str | None,
    now: datetime,
    left: int,
) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        if diagnostic.fix is None and diagnostic.rename_to is None:
            yield diagnostic
            continue
        before = affected.by(diagnostic.file)
        left -= len(before)
        after = edited(diagnostic) if left >= 0 else None
        if after is not None and _helps(diagnostic, before, after, environment, now):
            yield diagnostic
        else:
            yield replace(diagnostic, fix=None, rename_to=None)


def _helps(
    diagnostic: Diagnostic, before: Sequence[Document], after: Document, environment: str | None, now: datetime
) -> bool:
    others = tuple(document for document in before if document.file != diagnostic.file)
    kept = _errors(before, environment, now) - Counter([_problem(diagnostic)])
    return not _errors((*others, after), environment, now) - kept


def _errors(documents: Sequence[Document], environment: str | None, now: datetime) -> Counter[_Problem]:
    answer = validate(Tree(documents=tuple(documents)), environment=environment, now=now)
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
