"""What takes a run back, as text and as JSON: what cannot come back first."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from topicops.features.undo.values import Undo, UndoNote
from topicops.model.json_types import FormatVersion, json_text
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import PlanFile, plan_to_json
from topicops.model.printable import plural, printable, printable_lines

FORMAT_VERSION = "1.0"


class EditJson(TypedDict):
    topic: str
    file: str
    edits: Sequence[str]


class UndoJson(TypedDict):
    format_version: FormatVersion
    run: str
    environment: str
    commit: str | None
    topics: Sequence[str]
    lost: Sequence[UndoNote]
    edits: Sequence[EditJson]
    retire: Sequence[str]
    by_hand: Sequence[UndoNote]
    done: Sequence[UndoNote]
    notes: Sequence[str]
    plan: PlanFile | None
    """As in ``plan.json``; None: no file was edited."""


def undo_text(undo: Undo) -> str:
    """A part for each list that is not empty; the edits as they were written."""
    commit = f", planned from commit {undo.commit[:12]}" if undo.commit else ""
    head = f"Undo of run {undo.run} in {undo.environment}: it changed {plural(len(undo.topics), 'topic')}{commit}."
    parts = [
        [head],
        _part("Cannot come back:", _notes(undo.lost)),
        _part("Written to the files:", (f"{edit.file}: {text}" for edit in undo.edits for text in edit.edits)),
        _part("Only a tombstone deletes what the run created; type these, if that is meant:", retire_commands(undo)),
        _part("By hand:", _notes(undo.by_hand)),
        _part("As before the run already:", _notes(undo.done)),
        _part("Note:", undo.notes),
        _next(undo),
    ]
    return printable_lines("\n\n".join("\n".join(part) for part in parts if part))


def undo_json(undo: Undo, plan: Plan | None) -> str:
    found: UndoJson = {
        "format_version": FORMAT_VERSION,
        "run": undo.run,
        "environment": undo.environment,
        "commit": undo.commit,
        "topics": undo.topics,
        "lost": undo.lost,
        "edits": [{"topic": e.topic, "file": e.file, "edits": e.edits} for e in undo.edits],
        "retire": retire_commands(undo),
        "by_hand": undo.by_hand,
        "done": undo.done,
        "notes": undo.notes,
        "plan": json.loads(plan_to_json(plan)) if plan else None,
    }
    return json_text(found)


def retire_commands(undo: Undo) -> list[str]:
    """One command line for each topic that the run created."""
    reason = shlex.quote(f"Undo of run {undo.run}.")
    return [
        f"topicops retire {shlex.quote(topic)} --reason {reason} --environment {shlex.quote(undo.environment)}"
        for topic in undo.to_retire
    ]


def _part(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  {printable(line)}" for line in lines]
    return [title, *found] if found else []


def _notes(notes: Sequence[UndoNote]) -> Iterator[str]:
    return (f"{note.topic}: {note.text}" for note in notes)


def _next(undo: Undo) -> list[str]:
    """What a person types after this; the edited files are in the work tree only."""
    if not undo.edits:
        return ["No file was edited, so there is no plan to make."]
    files = " ".join(shlex.quote(edit.file) for edit in undo.edits)
    return [
        "Next: read the edits and the plan below, commit and have them merged as any change; then plan and apply.",
        f"  git diff -- {files}",
        "To leave it, restore these files with git: nothing else was written.",
    ]
