"""What a run did to each topic, by its lines of the audit log, and what takes that back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from topicops.features.shared.topic_files import FileEdit
from topicops.model.cluster.snapshot import Assignment
from topicops.model.json_types import FormatVersion
from topicops.model.plans.plan_file import PlanFile
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.results import IN_PLACE, OutcomeStatus

TOOK_EFFECT = (*IN_PLACE, OutcomeStatus.UNKNOWN)
"""Outcomes of changes that took effect, or may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoNote:
    """One sentence about a topic of the run."""

    topic: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How far a run can be taken back. Every topic of the run is in at least one of the lists."""

    format_version: FormatVersion = "1.0"
    run: str
    environment: str
    commit: str | None
    """Commit of the files that the run was planned from. None means that it is not known."""
    topics: tuple[str, ...]
    lost: tuple[UndoNote, ...] = ()
    edits: tuple[FileEdit, ...] = ()
    retire: tuple[str, ...] = ()
    """Commands for the topics that the run created, where a tombstone in this file might delete more than them."""
    by_hand: tuple[UndoNote, ...] = ()
    """Edits that people must make in the files, because undo cannot."""
    done: tuple[UndoNote, ...] = ()
    """Requests that the present files contain already."""
    notes: tuple[str, ...] = ()
    plan: PlanFile | None = None
    """Plan as in ``plan.json``. None means that no file was edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTopic:
    topic: str
    created: bool = False
    deleted: bool = False
    topic_id: str | None = None
    """Id of the topic that was created, else of the one that was deleted."""
    partitions: tuple[int, int] | None = None
    """Numbers before and after an expansion."""
    configs_before: Mapping[str, str | None] = field(default_factory=dict)
    """Canonical value of each override that the run changed. None means that it was not set."""
    configs_after: Mapping[str, str | None] = field(default_factory=dict)
    """Canonical values after the run, by the same keys."""
    rows_before: Assignment = field(default_factory=dict)
    """Replicas before the run, of the partitions that it moved, or still moves."""
    rows_after: Assignment = field(default_factory=dict)
    """Replicas that these partitions were moved to."""
    has_moved_back: bool = False
    """Whether a move of the run was cancelled, or dropped."""
    is_sure: bool = True
    """False if a request was sent, and its outcome is not known."""


def run_of(line: AuditLine) -> str:
    """Return the run that changed the topic: of a step of moves, the run that accepted the move."""
    return str(line.request.get("accepted_by") or line.run)


def took_effect(line: AuditLine) -> bool:
    """Return whether the line says that a topic changed, or may have; of moves, their starts and their ends do."""
    if line.action == "reassign":
        return line.request.get("what") in ("start", "end") and line.outcome is not OutcomeStatus.FAILED
    return line.outcome in TOOK_EFFECT


def past_topics(lines: Iterable[AuditLine]) -> dict[str, PastTopic]:
    """Sum up what took effect, by topic, sorted; a change that failed or was refused left nothing to take back."""
    found: dict[str, PastTopic] = {}
    for line in lines:
        if took_effect(line):
            found[line.topic] = _with_line(found.get(line.topic) or PastTopic(topic=line.topic), line)
    return dict(sorted(found.items()))


def _with_line(past: PastTopic, line: AuditLine) -> PastTopic:
    before, after = _values(line.request.get("before")), _values(line.request.get("after"))
    past = replace(past, is_sure=past.is_sure and line.outcome is not OutcomeStatus.UNKNOWN)
    match line.action:
        case "create":
            return replace(past, created=True, topic_id=line.topic_id_after)
        case "delete":
            return replace(past, deleted=True, topic_id=line.topic_id_before)
        case "expand":
            return replace(past, partitions=(int(str(before["partitions"])), int(str(after["partitions"]))))
        case "configure":
            old, new = _texts(before.get("configs")), _texts(after.get("configs"))
            # A later try sent the rest of the same change: the first reading of a value is the old one.
            return replace(
                past, configs_before={**old, **past.configs_before}, configs_after={**past.configs_after, **new}
            )
        case "reassign" if line.request.get("what") == "start":
            old_rows, new_rows = _rows(before), _rows(after)
            return replace(
                past, rows_before={**old_rows, **past.rows_before}, rows_after={**past.rows_after, **new_rows}
            )
        case "reassign" if not line.answer.startswith("done"):  # cancelled or dropped: as it was before
            return replace(
                past,
                has_moved_back=True,
                rows_before=_without(past.rows_before, line.request.get("partitions")),
                rows_after=_without(past.rows_after, line.request.get("partitions")),
            )
    return past


def _rows(values: Mapping[str, object]) -> Assignment:
    return {int(p): tuple(row) for p, row in _values(values.get("assignment")).items() if isinstance(row, Sequence)}


def _without(rows: Assignment, partitions: object) -> Assignment:
    gone = partitions if isinstance(partitions, Sequence) else ()
    return {p: row for p, row in rows.items() if p not in gone}


def _values(written: object) -> Mapping[str, object]:
    return written if isinstance(written, Mapping) else {}


def _texts(written: object) -> dict[str, str | None]:
    return {str(name): None if value is None else str(value) for name, value in _values(written).items()}
