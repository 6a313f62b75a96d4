"""Take a run back, as far as that is possible: by edits of spec files, and a plan of the files as they are then."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import partial
from pathlib import Path

from topicops.edges.specs.git import versions_of
from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.shared.writer import document_of, replace_text
from topicops.features.undo.taken_back import SpecFiles, undo_of
from topicops.features.undo.values import Undo, past_topics
from topicops.flow.runs.memory import audit_files
from topicops.flow.runs.run import now
from topicops.model.errors import UsageError
from topicops.model.runs.audit import are_whole, in_order
from topicops.steps.specs.validate import validate

NOT_WHOLE = "the audit log is not whole, so this may not be all: see `topicops audit verify`"


def undo(run: str, environment: str | None, topics: Path) -> Undo:
    """How a run is taken back, by the audit log and the files of now; nothing is written, no connection opened.

    Args:
        run: ``<group>/<run id>``, or the run id alone.
        environment: None: the run has changed one only.

    Raises:
        UsageError: The run changed nothing, or several environments.
        SpecError: The files are not valid.
    """
    logs = audit_files(environment)
    lines = [line for line in in_order(logs) if line.is_of_run(run)]
    changed = sorted({line.environment for line in lines})
    past = past_topics(lines)
    if not past:
        raise UsageError(f"run {run} changed no topic, by the audit log: nothing to take back")
    if len(changed) > 1:
        raise UsageError(f"run {run} changed {', '.join(changed)}: name one with --environment")
    found = undo_of(lines, _spec_files(topics, changed[0], past))
    used = [log for log in logs if log.environment == changed[0]]
    return found if are_whole(used) else replace(found, notes=(NOT_WHOLE, *found.notes))


def _spec_files(topics: Path, environment: str, names: Container[str]) -> SpecFiles:
    """The files of now; those of other topics may be invalid."""

    def needs(name: str) -> bool:
        return name in names

    tree, at = read_tree(topics), now()
    _, desired = validate(tree, environment=environment, now=at, needs=needs).require()
    return SpecFiles(
        tree=tree,
        desired=desired,
        text_of=lambda document: regular_text(Path(document.file)),
        read=partial(document_of, topics),
        versions=lambda document: versions_of(Path(document.file)),
        needs=needs,
        now=at,
    )


def write_undo(found: Undo) -> None:
    """Write the edits. Raises ``SpecFileError`` if a file changed meanwhile, or the disk refuses."""
    for edit in found.edits:
        replace_text(Path(edit.file), edit.after, before=edit.before)
