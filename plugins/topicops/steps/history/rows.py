"""The rows that a run leaves in the history, from what its steps found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.history import DeltaRow, OutcomeRow, QualityRow, UnhealthyRow
from topicops.model.runs.results import Outcome, QualityReport
from topicops.model.specs.environment import Environment


def delta_rows(delta: Delta, environment: Environment) -> Iterator[DeltaRow]:
    """Every difference, one field a row; paused topics and protected ones that no file names are left out."""
    for found in delta.topics:
        match found.topic_class:
            case TopicClass.DIFFERENT if found.desired and found.live:
                yield from _fields(found, found.desired, found.live)
            case TopicClass.MISSING | TopicClass.TOMBSTONED:
                yield _row(found)
            case TopicClass.UNMANAGED if not environment.protecting_pattern(found.topic):
                yield _row(found)


def quality_rows(reports: Iterable[QualityReport]) -> Iterator[QualityRow]:
    for report in reports:
        for result in report.results:
            yield QualityRow(
                suite=report.suite,
                rule=result.rule,
                severity=result.severity,
                success=result.success,
                rows_checked=result.rows_checked,
                rows_failed=result.rows_failed,
                rows_failed_before=result.rows_failed_before,
            )


def unhealthy_rows(reports: Iterable[QualityReport]) -> Iterator[UnhealthyRow]:
    """The rows that failed rules name, as far as they are about a topic."""
    for report in reports:
        for result in report.results:
            for example in result.examples:
                shown = dict(example.row)
                topic, partition = shown.pop("topic", None), shown.pop("partition", None)
                if isinstance(topic, str):
                    yield UnhealthyRow(
                        suite=report.suite,
                        rule=result.rule,
                        topic=topic,
                        partition=partition if isinstance(partition, int) else None,
                        shown=json.dumps(shown, sort_keys=True),
                        so_before=example.was_so_before,
                    )


def outcome_rows(outcomes: Sequence[Outcome]) -> Iterator[OutcomeRow]:
    for outcome in outcomes:
        yield OutcomeRow(
            topic=outcome.topic,
            action=outcome.action,
            status=outcome.status.value,
            message=outcome.message,
            digest=outcome.digest,
            sent=outcome.sent,
        )


def _fields(found: TopicDelta, desired: DesiredRow, live: LiveRow) -> Iterator[DeltaRow]:
    if "partitions" in found.changed:
        yield _row(found, "partitions", str(desired.partitions), str(live.partitions))
    if "replication_factor" in found.changed:
        factors = sorted({live.replication_factor_min, live.replication_factor_max})
        yield _row(found, "replicationFactor", str(desired.replication_factor), " to ".join(map(str, factors)))
    if "assignment" in found.changed:
        yield _row(found, "assignment", desired.assignment_digest, live.assignment_digest)
    if "configs" in found.changed:
        wanted, is_live = _configs(desired.configs), _configs(live.configs)
        for name in sorted(wanted.keys() | is_live.keys()):
            if wanted.get(name) != is_live.get(name):
                yield _row(found, f"configs.{name}", wanted.get(name), is_live.get(name))


def _configs(text: str) -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads(text)
    return found


def _row(found: TopicDelta, field: str = "", desired: str | None = None, live: str | None = None) -> DeltaRow:
    return DeltaRow(
        topic=found.topic,
        topic_class=found.topic_class.value,
        field=field,
        desired=desired,
        live=live,
        owner=(found.desired.owner or None) if found.desired else None,
    )
