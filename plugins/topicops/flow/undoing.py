"""Take a run back, as far as that is possible: by edits of spec files, and a plan of the files as they are then."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from topicops.flow.inspecting import audit_files
from topicops.flow.planning import make_plan
from topicops.flow.runs.run import Run, now
from topicops.model.errors import UsageError
from topicops.model.plans.plan import Plan
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.undo import Undo
from topicops.model.specs.document import Document
from topicops.steps.audit_queries import of_run
from topicops.steps.undoing.past_topics import past_topics


def lines_of_run(run: str, environment: str | None) -> tuple[AuditLine, ...]:
    """What a run changed, by the audit log: ``<group>/<run id>``, or the run id alone. Opens no connection.

    Args:
        environment: None: the run has changed one only.

    Raises:
        UsageError: It changed nothing, or several environments.
    """
    lines = of_run(audit_files(environment), run)
    if not past_topics(lines):
        raise UsageError(f"run {run} changed no topic, by the audit log: nothing to take back")
    changed = sorted({line.environment for line in lines})
    if len(changed) > 1:
        raise UsageError(f"run {run} changed {', '.join(changed)}: name one with --environment")
    return tuple(lines)


def undo(lines: tuple[AuditLine, ...], topics: Path) -> Undo:
    """How the run of these lines is taken back; nothing is written. Raises ``SpecError`` for invalid files."""
    from topicops.edges.specs.git import versions_of
    from topicops.edges.specs.open_files import regular_text
    from topicops.edges.specs.reader import read_tree
    from topicops.edges.specs.writer import document_of
    from topicops.steps.specs.validate import validate
    from topicops.steps.undoing.undo import SpecFiles, undo_of

    tree, at = read_tree(topics), now()
    _, desired = validate(tree, environment=lines[0].environment, now=at).require()

    def text_of(document: Document) -> str | None:
        return regular_text(Path(document.file))

    files = SpecFiles(
        tree=tree,
        desired=desired,
        text_of=text_of,
        read=partial(document_of, topics),
        versions=lambda document: versions_of(Path(document.file)),
        now=at,
    )
    return undo_of(lines, files)


def write_undo(found: Undo) -> None:
    """Write the edits. Raises ``SpecFileError`` if a file changed meanwhile, or the disk refuses."""
    from topicops.edges.specs.writer import replace_text

    for edit in found.edits:
        replace_text(Path(edit.file), edit.after, before=edit.before)


def plan_undo(run: Run, found: Undo) -> Plan:
    """The plan of the files of now, for the topics of the run that is taken back."""
    return make_plan(run, only=found.topics)
