"""What runs saw, as lines: which troubles each opens and closes, and the spans of time that they add up to."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import environment
from topicops.features.ask.history.answers import History, spans_text, topic_text
from topicops.features.ask.history.lines import (
    Difference,
    FailingRule,
    HistoryLine,
    Span,
    Trouble,
    UnhealthyTopic,
    spans_of,
)
from topicops.features.ask.history.recording import Sight, sight_of, with_moves
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
COMPARED = dict.fromkeys(TopicClass, 0)


def run(number: int, **values: object) -> HistoryLine:
    """Return a run of the drift DAG, an hour after the one before; it compared all topics."""
    at = AT + timedelta(hours=number)
    line = HistoryLine(
        environment="prod", run=f"dag/{number}", mode="drift", recorded_at=at + timedelta(seconds=30), read_at=at,
        commit="c" * 40, has_looked=True, classes=COMPARED, rules={},
    )  # fmt: skip
    return replace(line, **values)  # type: ignore[arg-type]


def saw(
    *troubles: Trouble, left_out: Sequence[str] = (), rules: Sequence[str] = (), whole: Sequence[str] = ()
) -> Sight:
    return Sight(
        troubles=troubles,
        has_compared=True,
        not_compared=frozenset(left_out),
        rules=frozenset(rules),
        whole_rules=frozenset(whole),
    )


def recorded(*runs: tuple[HistoryLine, Sight]) -> list[HistoryLine]:
    lines: list[HistoryLine] = []
    for line, sight in runs:
        lines.append(with_moves(line, sight, lines))
    return lines


def times(lines: Sequence[HistoryLine]) -> list[tuple[str, str, str | None]]:
    """Topic or rule, the run in which it began, and the run in which it ended."""
    known = spans_of(lines)
    return [
        (str(getattr(span.what, "topic", "") or span.what.key[1]), span.began.run, span.ended and span.ended.run)
        for span in (*known.ended, *known.open.values())
    ]


def wrong(topic: str, live: str = "12", owner: str | None = None) -> Difference:
    return Difference(topic=topic, topic_class="different", field="partitions", desired="6", live=live, owner=owner)


RULE = FailingRule(suite="after", rule="Q12", severity="warning", rows_failed=25)
SICK = UnhealthyTopic(topic="t", suite="after", rule="Q12", partition=3)


# ---- planted ----


def planted(seed: int) -> tuple[list[HistoryLine], set[tuple[str, str, str | None]]]:
    """Differences that come and go by chance, in runs of which some leave topics out: the lines, and the spans."""
    chance = random.Random(seed)
    topics = [f"topic-{number}" for number in range(12)]
    runs: list[tuple[HistoryLine, Sight]] = []
    expected: list[tuple[str, str, str | None]] = []
    began: dict[str, str] = {}
    there: set[str] = set()
    for number in range(60):
        there ^= {topic for topic in topics if chance.random() < 0.1}
        out = {topic for topic in topics if chance.random() < 0.2}
        line = run(number)
        if chance.random() < 0.2:  # a run of verify
            runs.append((replace(line, has_looked=False, classes=None), sight_of(None, None, frozenset(), ())))
            continue
        for topic in {*topics} - out:
            if topic in there:
                began.setdefault(topic, line.run)
            elif topic in began:
                expected.append((topic, began.pop(topic), line.run))
        runs += [(line, saw(*map(wrong, sorted(there - out)), left_out=[*out]))] * chance.choice((1, 1, 2))
    return recorded(*runs), {*expected, *((topic, run, None) for topic, run in began.items())}


def test_planted_differences_are_found_as_they_were_planted() -> None:
    for seed in range(40):
        lines, expected = planted(seed)
        found = times(lines)
        assert (set(found), len(found)) == (expected, len(expected)), seed


# ---- what a run does not look for ----


def test_a_run_closes_only_what_it_looked_for() -> None:
    all_of_it = (wrong("t"), RULE, SICK)
    first = (run(0), saw(*all_of_it, rules=["Q12"], whole=["Q12"]))
    blind: Mapping[str, tuple[HistoryLine, Sight]] = {
        "nothing": (run(1, has_looked=False, classes=None), sight_of(None, None, frozenset(), ())),
        "another topic, another rule": (run(1), saw(left_out=["t"], rules=["Q11"], whole=["Q11"])),
    }
    for name, second in blind.items():
        lines = recorded(first, second)
        assert (lines[1].opened, lines[1].closed) == ((), ()), name

    partly = recorded(first, (run(1), saw(RULE, left_out=["t"], rules=["Q12"])))
    assert partly[1].closed == (), "the rule names a part of its rows alone"
    whole = recorded(first, (run(1), saw(rules=["Q12"], whole=["Q12"])))
    assert set(whole[1].closed) == set(all_of_it)


def test_a_run_that_read_the_cluster_earlier_closes_and_opens_nothing() -> None:
    lines = recorded((run(5), saw(wrong("t"))), (run(3), saw(wrong("u"))), (run(6), saw(wrong("t"), wrong("u"))))
    assert times(lines) == [("t", "dag/5", None), ("u", "dag/6", None)]


def test_a_run_that_looked_for_nothing_makes_no_other_run_an_earlier_one() -> None:
    verified = run(5, has_looked=False, classes=None)
    lines = recorded((verified, sight_of(None, None, frozenset(), ())), (run(3), saw(wrong("t"))))
    assert times(lines) == [("t", "dag/3", None)]


def test_a_run_that_is_recorded_again_opens_nothing_twice_and_may_end_what_it_began() -> None:
    lines = recorded(
        (run(0), saw(wrong("t"), wrong("u"))), (run(0), saw(wrong("t"), wrong("u"))), (run(0), saw(wrong("u")))
    )
    assert [len(line.opened) for line in lines] == [2, 0, 0]
    assert times(lines) == [("t", "dag/0", "dag/0"), ("u", "dag/0", None)]


def test_another_value_is_another_difference_and_another_owner_is_not() -> None:
    lines = recorded(
        (run(0), saw(wrong("t", owner="a"))), (run(1), saw(wrong("t", owner="b"))), (run(2), saw(wrong("t", live="13")))
    )
    assert times(lines) == [("t", "dag/0", "dag/2"), ("t", "dag/2", None)]


def test_lines_that_somebody_removed_hide_no_trouble_that_lasts() -> None:
    lines = recorded((run(0), saw(wrong("t"), wrong("u"))), (run(1), saw(wrong("t"))))[1:]
    lines.append(with_moves(run(2), saw(wrong("t")), lines))
    assert times(lines) == [("t", "dag/2", None)]


# ---- what a run saw ----


def found(topic: str, topic_class: TopicClass, *changed: str, **sides: DesiredRow | LiveRow) -> TopicDelta:
    return TopicDelta(topic=topic, presence="both", topic_class=topic_class, changed=frozenset(changed), **sides)  # type: ignore[arg-type]


def sight(*topics: TopicDelta, left_out: Sequence[str] = ()) -> Sight:
    return sight_of(Delta(topics=topics, counts=COMPARED), environment(), frozenset(left_out), ())


def differences(sight: Sight) -> Iterator[Difference]:
    return (trouble for trouble in sight.troubles if isinstance(trouble, Difference))


def test_each_field_that_differs_is_a_difference_with_both_values_and_the_owner() -> None:
    desired = DesiredRow("t", "present", 6, 3, "a", json.dumps({"x": "1", "y": "2"}), "team")
    live = LiveRow("t", 4, 2, 3, "b", json.dumps({"y": "3", "z": "4"}))
    changed = ("partitions", "replication_factor", "assignment", "configs")
    seen = sight(found("t", TopicClass.DIFFERENT, *changed, desired=desired, live=live))

    assert [(d.field, d.desired, d.live, d.owner) for d in differences(seen)] == [
        ("partitions", "6", "4", "team"),
        ("replicationFactor", "3", "2 to 3", "team"),
        ("assignment", "a", "b", "team"),
        ("configs.x", "1", None, "team"),
        ("configs.y", "2", "3", "team"),
        ("configs.z", None, "4", "team"),
    ]


def test_paused_protected_and_broken_topics_are_left_out_and_those_of_files_were_not_compared() -> None:
    names = [("p", TopicClass.PAUSED), ("__consumer_offsets", TopicClass.UNMANAGED), ("u", TopicClass.UNMANAGED)]
    names += [("m", TopicClass.MISSING), ("t", TopicClass.TOMBSTONED), ("broken", TopicClass.UNMANAGED)]
    seen = sight(*(found(name, word) for name, word in names), left_out=["broken"])

    assert [(d.topic, d.topic_class, d.field) for d in differences(seen)] == [
        ("u", "unmanaged", None),
        ("m", "missing", None),
        ("t", "tombstoned", None),
    ]
    assert [name for name, _ in names if not seen.has_looked_for(wrong(name))] == ["p", "broken"]


@pytest.mark.parametrize(("failed", "is_whole"), [(2, True), (3, False)])
def test_a_broken_rule_is_a_trouble_and_so_is_each_partition_that_it_names(failed: int, *, is_whole: bool) -> None:
    example, cluster = FailingRow(row={"topic": "t", "partition": 3, "isr": [1]}), FailingRow(row={"brokers": 2})
    bad = QualityResult(
        rule="Q12", title="", severity="warning", success=False, rows_checked=9, rows_failed=failed,
        examples=(example, cluster),
    )  # fmt: skip
    good = replace(bad, rule="Q11", success=True, rows_failed=0, examples=())
    report = QualityReport(
        suite="after", environment="e", cluster_id="c", run="r", checked_at=AT, seconds=1, results=(bad, good)
    )

    seen = sight_of(None, None, frozenset(), [report])

    assert seen.troubles == (
        FailingRule(suite="after", rule="Q12", severity="warning", rows_failed=failed),
        UnhealthyTopic(topic="t", suite="after", rule="Q12", partition=3, shown='{"isr": [1]}'),
    )
    assert seen.has_looked_for(SICK) is is_whole
    assert [seen.has_looked_for(replaced) for replaced in (RULE, wrong("t"))] == [True, False]


# ---- text ----


def test_the_texts_name_values_runs_and_times_without_control_characters() -> None:
    lines = [
        run(0, opened=(wrong("t", owner="team"), RULE, SICK)),
        run(1, run="dag/\x1b", closed=(wrong("t"),), commit=None),
    ]
    began = "  began 2026-11-22T09:00:00Z, run dag/0, commit cccccccccccc"
    known = spans_of(lines)

    def given(*spans: Span) -> History:
        return History(environment="e", newest=known.newest, spans=spans, left_out=())

    assert spans_text(given(*known.ended), "difference").splitlines() == [
        "t: partitions: 6 in the files, 12 live (owner team)",
        began,
        "  ended 2026-11-22T10:00:00Z, run dag/\\x1b, commit none",
        "",
        "1 difference: 1 ended, 0 still there.",
    ]
    rule, sick = known.open.values()
    assert spans_text(given(rule), "failing rule").splitlines() == [
        "Q12 (warning), after the changes: 25 rows failed when it began",
        began,
        "  still there",
        "",
        "1 failing rule: 0 ended, 1 still there at 2026-11-22T10:00:00Z.",
    ]
    assert topic_text(given(sick)).splitlines() == [
        "partition 3 breaks rule Q12 (after the changes)",
        began,
        "  still there",
    ]
    assert spans_text(given(), "difference") == "No difference."
    assert topic_text(given()) == "The history of e has nothing about this topic."
