"""What a delete frees, and what a topic holds whose retention gets shorter: by broker, in no digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.builders import desired_of, desired_topic, environment, live_topic, snapshot, tombstone
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import DirectoriesByBroker, LogDirectories
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.plans.plan_file import plan_from_json, plan_to_json
from topicops.steps.planning.gate import gate
from topicops.steps.planning.only import keep_only
from topicops.steps.reporting.plan_document import plan_markdown, plan_text

GIB = 1 << 30


def told(*names: str, **sizes: int) -> LogDirectories:
    """Return the answer of a broker with all partitions of the topics."""
    return LogDirectories(held=dict.fromkeys(names, frozenset(range(3))), log_bytes=sizes)


THREE = {broker: told("a", "b", a=broker * GIB, b=512) for broker in (1, 2, 3)}


def planned(directories: DirectoriesByBroker | None, **retention: str) -> ChangeSet:
    """Return a plan that deletes the topics a and b; of those in ``retention`` it sets retention.ms, 2 s before."""
    old = {"retention.ms": "2000"}
    live = snapshot(*(live_topic(n, overrides=old) for n in "ab"), log_directories=directories)
    wanted = [
        desired_topic(n, configs={"retention.ms": retention[n]}) if n in retention else tombstone(n) for n in "ab"
    ]
    return plan_of(desired_of(*wanted), live)


def gated(change_set: ChangeSet) -> Plan:
    return gate(change_set, environment())


@pytest.mark.parametrize(
    ("directories", "line"),
    [
        pytest.param(THREE, "frees 6.0GiB: broker 1 1.0GiB, broker 2 2.0GiB, broker 3 3.0GiB", id="all brokers tell"),
        pytest.param(
            {**THREE, 2: "broker 2 gave no answer in time"},
            "frees at least 4.0GiB: broker 1 1.0GiB, broker 2 not known, broker 3 3.0GiB",
            id="one gave no answer",
        ),
        pytest.param(
            {**THREE, 2: replace(THREE[2], held={"a": frozenset({0, 1})})},
            "frees at least 4.0GiB: broker 1 1.0GiB, broker 2 not known, broker 3 3.0GiB",
            id="one does not tell of each of its replicas",
        ),
        pytest.param(dict.fromkeys(THREE), "frees a number of bytes that is not known", id="no such request"),
        pytest.param({}, "frees a number of bytes that is not known", id="nobody answered"),
        pytest.param(None, "frees a number of bytes that is not known", id="nobody was asked"),
    ],
)
def test_a_delete_says_what_it_frees_on_each_broker(directories: DirectoriesByBroker | None, line: str) -> None:
    plan = gated(planned(directories, b="2000"))

    assert f"      {line}\n" in plan_text(plan)
    assert f"      {line}\n" in plan_text(plan, verbose=True)
    assert f"<br>{line} |" in plan_markdown(plan)


@pytest.mark.parametrize(
    ("retention_ms", "is_said"), [pytest.param("1000", True, id="shorter"), pytest.param("9000", False, id="longer")]
)
def test_shorter_retention_says_what_the_topic_holds_and_no_more(retention_ms: str, is_said: bool) -> None:
    change_set = planned(THREE, a=retention_ms, b="2000")
    text = plan_text(gated(change_set))

    assert [*change_set.log_bytes] == (["a"] if is_said else [])
    line = "holds 6.0GiB today, of which a part may go: broker 1 1.0GiB, broker 2 2.0GiB, broker 3 3.0GiB\n"
    assert (f"      {line}" in text, "GiB" in text) == (is_said, is_said)


def test_the_sizes_of_one_block_and_of_the_whole_plan_are_added() -> None:
    shorter = plan_text(gated(planned(THREE, a="1000", b="1000")))
    deleted = plan_text(gated(planned(THREE)))

    assert "~ 2 topics " in shorter, "different sizes are no reason for two blocks"
    assert "      the 2 topics of shorter retention hold 6.0GiB today, of which a part may go: broker 1 1" in shorter
    assert "\nthe 2 deletes free 6.0GiB: broker 1 1.0GiB, broker 2 2.0GiB, broker 3 3.0GiB\n" in deleted


def test_the_sizes_are_in_the_file_and_in_no_digest() -> None:
    plan, other = gated(planned(THREE)), gated(planned({**THREE, 2: told("a", "b", a=7)}))

    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.change_set.log_bytes == {"a": {1: GIB, 2: 2 * GIB, 3: 3 * GIB}, "b": dict.fromkeys((1, 2, 3), 512)}
    assert plan.change_set.log_bytes != other.change_set.log_bytes
    assert plan.fingerprint == other.fingerprint
    assert [each.digest for each in plan.changes] == [each.digest for each in other.changes]


def test_a_part_of_a_plan_has_the_sizes_of_its_topics() -> None:
    part = keep_only(planned(THREE), snapshot(live_topic("a"), live_topic("b")), ["a", "b"], "b")

    assert [*part.log_bytes] == ["b"]


def test_many_brokers_are_no_long_line() -> None:
    sizes: Mapping[int, int | None] = dict.fromkeys(range(12), 1023)
    plan = gated(replace(planned(THREE, b="2000"), log_bytes={"a": sizes}))

    shown = ", ".join(f"broker {broker} 1023B" for broker in range(10))
    assert f"      frees 12.0KiB: {shown} and 2 more\n" in plan_text(plan)
