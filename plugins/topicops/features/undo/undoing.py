"""Take a run back, as far as that is possible: by edits of spec files, and a plan of the files as they are then."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from topicops.edges.specs.git import versions_of
from topicops.edges.specs.reader import read_tree
from topicops.features.undo.taken_back import KnownFiles, undo_of
from topicops.features.undo.values import Undo, UndoNote, past_topics, run_of, took_effect
from topicops.flow.runs.access import NO_MOVES, Moves
from topicops.flow.runs.memory import audit_files
from topicops.flow.runs.run import home_folder, now
from topicops.model.errors import UsageError
from topicops.model.printable import plural
from topicops.model.runs.audit import are_whole, in_order
from topicops.steps.reporting.document import Section, as_text
from topicops.steps.specs.validate import validate


def undo(run: str | None, environment: str | None, topics: Path, *, moves: Moves = NO_MOVES) -> Undo:
    """Say how a run is taken back, by the audit log and the files of now; nothing is written, no connection opened.

    Args:
        run: ``<group>/<run id>``, or the run id alone; None: the last one that changed a topic.
        moves: Knows which replicas move now, or wait to.

    Raises:
        UsageError: The run changed nothing, or several environments where none is named.
        SpecError: The files are not valid.
    """
    logs = audit_files(environment)
    lines = in_order(logs)
    if run is None:
        run = next((run_of(line) for line in reversed(lines) if took_effect(line)), "")
        if not run:
            raise UsageError("no run changed a topic, by the audit log: nothing to take back")
    lines = [line for line in lines if run in (run_of(line), run_of(line).partition("/")[2])]
    changed = sorted({line.environment for line in lines})
    past = past_topics(lines)
    if not past:
        raise UsageError(f"run {run} changed no topic, by the audit log: nothing to take back")
    if len(changed) > 1:
        raise UsageError(f"run {run} changed {', '.join(changed)}: name one with --environment")
    tree, at, needs = read_tree(topics), now(), past.__contains__  # the files of other topics may be invalid
    _, desired = validate(tree, environment=changed[0], now=at, needs=needs).require()
    files = KnownFiles(
        topics=topics,
        tree=tree,
        environment=changed[0],
        desired=desired,
        versions=versions_of,
        needs=needs,
        now=at,
        moving={topic for topic, found in moves.known(home_folder(), changed[0]).topics.items() if found.partitions},
    )
    found = undo_of(lines, files)
    if are_whole(log for log in logs if log.environment == changed[0]):
        return found
    doubt = "the audit log is not whole, so this may not be all: see `topicops audit verify`"
    return replace(found, notes=(doubt, *found.notes))


def undo_text(undo: Undo) -> str:
    """Write a part for each list that is not empty; what cannot come back first, and the edits as they were written."""
    commit = f", planned from commit {undo.commit[:12]}" if undo.commit else ""
    head = f"Undo of run {undo.run} in {undo.environment}: it changed {plural(len(undo.topics), 'topic')}{commit}."
    created = "The run created these, and only a tombstone deletes them; type these, if that is meant"
    next_ = ["No file was edited, so there is no plan to make."]
    if undo.edits:
        next_ = [
            "Next: read the edits and the plan below, commit and have them merged as any change; then plan and apply.",
            f"  git diff -- {' '.join(shlex.quote(edit.file) for edit in undo.edits)}",
            "To leave it, restore these files with git: nothing else was written.",
        ]
    sections = [
        Section(rows=[head]),
        Section(title="Cannot come back", rows=_notes(undo.lost)),
        Section(title="Written to the files", rows=[f"{e.file}: {text}" for e in undo.edits for text in e.edits]),
        Section(title=created, rows=undo.retire),
        Section(title="By hand", rows=_notes(undo.by_hand)),
        Section(title="As before the run already", rows=_notes(undo.done)),
        Section(title="Note", rows=undo.notes),
        Section(rows=next_),
    ]
    return as_text(sections).rstrip("\n")


def _notes(notes: Sequence[UndoNote]) -> list[str]:
    return [f"{note.topic}: {note.text}" for note in notes]
