"""What pages show of moves: those of an environment, of one topic, and of a run with those whose question it asked."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from topicops.features.moves.record import EndedMove, read_moves
from topicops.features.moves.telling.status import (
    MovesStatus,
    PartitionStatus,
    State,
    TopicStatus,
    notes_about,
    status_of,
)
from topicops.features.moves.telling.text import speed
from topicops.flow.runs.run import Place, now
from topicops.model.errors import ArtifactError
from topicops.model.printable import about, plural
from topicops.on_airflow.pages.parts import BELOW, drawn_bar, more, muted, problem_box, run_link
from topicops.on_airflow.plugged_at_start import topic_link
from topicops.steps.reporting.markup import Html, pill, table, tag, together
from topicops.steps.reporting.plan_wording import size_text

TOPICS_SHOWN = 20
PARTITIONS_SHOWN = 200
NOTES_SHOWN = 20
ENDED_SHOWN = 20
ENDED_WITHIN = timedelta(days=1)
"""A page shows moves that ended so long ago."""
_TONES: Mapping[State, str] = {"waits": "calm", "moves": "good", "moves back": "warn"}
_ENDED_TONES = {"done": "good", "cancelled": "warn", "dropped": "warn"}


@dataclass(frozen=True, slots=True)
class _Looked:
    """The moves of an environment at one time."""

    at: datetime
    found: MovesStatus
    recent: tuple[EndedMove, ...]


Section = Callable[[_Looked], Iterator[Html | None]]


def moves_of_environment(home: Place, environment: str) -> Html | None:
    """Show all moves of an environment; None where nothing moves, nothing is owed and nothing ended lately."""
    return _shown(home, environment, _section)


def moves_of_topic(home: Place, environment: str, topic: str) -> Html | None:
    """Show each partition of one topic that moves."""
    return _shown(home, environment, lambda looked: _of_topic(looked, topic))


def moves_of_runs(home: Place, environment: str, runs: Collection[str]) -> Html | None:
    """Show what moves because one of these runs, ``<DAG>/<run id>``, has begun it."""

    def section(looked: _Looked) -> Iterator[Html | None]:
        topics = tuple(topic for topic in looked.found.topics if topic.run in runs)
        recent = tuple(ended for ended in looked.found.ended if ended.run in runs)
        notes = tuple(said for topic in topics for said in notes_about(looked.found.notes, topic.topic))
        own = replace(looked, found=replace(looked.found, topics=topics, notes=notes), recent=recent)
        return _section(own, says_all=False) if topics or recent else iter(())

    return _shown(home, environment, section)


def topics_that_move(home: Place, environment: str) -> Collection[str]:
    """Name the topics with moves that have not ended; none where the record is damaged."""
    try:
        record = read_moves(home, environment)
    except ArtifactError:
        return ()
    return [move.topic for move in record.topics if move.partitions] if record else ()


def cancel_command(topic: str, environment: str) -> str:
    return f"topicops moves --cancel {shlex.quote(topic)} --environment {environment}"


def _shown(home: Place, environment: str, section: Section) -> Html | None:
    try:
        record = read_moves(home, environment)
    except ArtifactError as error:
        return problem_box(f"Nobody can say what moves: {error}")
    if record is None:
        return None
    at = now()
    found = status_of(environment, record)
    looked = _Looked(at, found, tuple(ended for ended in found.ended if at - ended.at < ENDED_WITHIN))
    parts = list(section(looked))
    return together(*parts) if parts else None


def _section(looked: _Looked, *, says_all: bool = True) -> Iterator[Html | None]:
    """Yield nothing where there is nothing to say."""
    found = looked.found
    if found.is_idle and not looked.recent:
        return
    yield tag("h2", "Replicas that move", id="moves")
    if says_all or not found.topics:
        yield tag("p", f"{found.text[0].upper()}{found.text[1:]}.")
    yield None if found.is_idle else muted("; ".join(_facts(looked)), ".")
    yield from _notes(found.notes)
    if found.topics:
        shown = found.topics[:TOPICS_SHOWN]
        rows = (_topic_row(topic, found.environment) for topic in shown)
        yield table(("topic", "why", "how far", "speed", "to take it back"), rows, cls="moves")
        yield more(len(found.topics) - len(shown), "topics")
    yield from _ended(looked)


def _of_topic(looked: _Looked, name: str) -> Iterator[Html | None]:
    topic = next((topic for topic in looked.found.topics if topic.topic == name), None)
    recent = tuple(ended for ended in looked.recent if ended.topic == name)
    if topic is None and not recent:
        return
    yield tag("h2", "Its replicas move" if topic else "Its replicas have moved", id="moves")
    if topic:
        yield tag("p", f"{topic.text[0].upper()}{topic.text[1:]}; {topic.why}, by run ", _run(topic.run))
        yield muted("; ".join(_facts(looked)), ".")
        yield from _notes(notes_about(looked.found.notes, name))
        rows = (_partition_row(partition) for partition in topic.partitions[:PARTITIONS_SHOWN])
        yield table(("partition", "from", "to", "how far", "state"), rows, cls="rows partitions-that-move")
        yield more(len(topic.partitions) - PARTITIONS_SHOWN, "partitions")
        back = "This takes it back until it ends; afterwards only another move does: "
        yield tag("p", back, tag("code", cancel_command(name, looked.found.environment)))
        yield muted("Meanwhile the topic is neither expanded nor deleted.")
    yield from _ended(replace(looked, recent=recent))


def _facts(looked: _Looked) -> Iterator[str]:
    found = looked.found
    if found.bytes_per_s:
        yield f"all moves together copy {speed(found.bytes_per_s)}"
    limit = found.throttle
    yield "no throttle is set" if limit is None else f"throttle {size_text(limit)}/s for each broker"
    if found.stepped_at:
        waited = looked.at - found.stepped_at
        since = "now" if waited < timedelta(minutes=1) else f"{about(waited.total_seconds())} ago"
        yield f"last step at {found.stepped_at:%Y-%m-%d %H:%M:%S} UTC ({since})"
    else:
        yield "no step was made yet"


def _notes(notes: Sequence[str]) -> Iterator[Html | None]:
    if notes:
        yield tag("ul", *(tag("li", said) for said in notes[:NOTES_SHOWN]), cls="card warn")
        yield more(len(notes) - NOTES_SHOWN, "notes")


def _topic_row(topic: TopicStatus, environment: str) -> Iterator[Html | str | None]:
    yield topic_link(topic.topic)
    yield together(topic.why, tag("div", _run(topic.run), cls="muted"))
    yield together(_bar(topic.percent), tag("div", topic.text))
    yield speed(topic.bytes_per_s) if topic.bytes_per_s else None
    yield tag("code", cancel_command(topic.topic, environment)) if topic.partitions else None


def _partition_row(partition: PartitionStatus) -> Iterator[Html | str | None]:
    yield str(partition.partition)
    yield _brokers(partition.origin)
    yield _brokers(partition.target)
    copied = f"{size_text(partition.copied_bytes)} of {size_text(partition.size_bytes)}"
    yield together(_bar(partition.percent), tag("div", copied, cls="muted")) if partition.size_bytes else None
    tone = "bad" if partition.state == "moves" and partition.note else _TONES[partition.state]
    yield together(pill(partition.state, tone), f" {partition.note}")


def _ended(looked: _Looked) -> Iterator[Html | None]:
    if not looked.recent:
        return
    counts = sum(ended.partitions for ended in looked.recent)
    summary = f"{plural(counts, 'partition')} ended in the last day"
    rows = (_ended_row(ended) for ended in looked.recent[:ENDED_SHOWN])
    listed = table(("topic", "how", "partitions", "when", "by run"), rows)
    left_out = more(len(looked.recent) - ENDED_SHOWN, "rows")
    yield tag("details", tag("summary", summary), listed, left_out)


def _ended_row(ended: EndedMove) -> Iterator[Html | str | None]:
    yield topic_link(ended.topic)
    said = tag("div", ended.message, cls="muted") if ended.message else None
    yield together(pill(ended.status, _ENDED_TONES.get(ended.status, "calm")), said)
    yield f"{ended.partitions:,}"
    yield f"{ended.at:%Y-%m-%d %H:%M:%S} UTC"
    yield _run(ended.run)


def _run(name: str) -> Html:
    return run_link(name, BELOW)


def _bar(percent: int | None) -> Html | None:
    return None if percent is None else drawn_bar(("comes", 0.0, float(percent)))


def _brokers(row: Sequence[int]) -> str:
    return ", ".join(map(str, row))
