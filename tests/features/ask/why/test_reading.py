"""``why`` as a whole: what it refuses, whether brokers heard of a config, and its answer as text."""

from __future__ import annotations

import json

import pytest
from kazoo.protocol.states import ZnodeStat

from fixtures.simulated import Simulated
from topicops.edges.zookeeper.session import Znode
from topicops.features.ask.why.commands import why_text
from topicops.features.ask.why.reading import why
from topicops.features.ask.why.topic_times import KEPT_MS, is_told
from topicops.features.ask.why.values import STUCK, WAITS, Cause, Why
from topicops.model.errors import UsageError


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "orders\n", "a b"])
def test_a_name_that_leads_to_another_znode_is_no_topic(simulated: Simulated, name: str) -> None:
    run = simulated.planned()
    with pytest.raises(UsageError, match="this is no name of a topic"):
        why(run, name)


MINUTE = 60_000
NOON = 1_714_564_800_000


def znode(zxid: int, *, created: int = 1, ms: int = NOON, data: bytes = b"{}") -> Znode:
    """Written by transaction ``zxid``, at ``ms``."""
    return Znode.of(data, ZnodeStat(created, zxid, ms, ms, 0, 0, 0, 0, len(data), 0, created))


def notice(zxid: int, topic: str, *, ms: int = NOON) -> Znode:
    data = json.dumps({"version": 2, "entity_path": f"topics/{topic}"}).encode()
    return znode(zxid, created=zxid, ms=ms, data=data)


TOPIC, CONFIG = znode(10, created=10), znode(50, created=9)


@pytest.mark.parametrize(
    ("notices", "age_ms", "told"),
    [
        pytest.param([notice(51, "orders")], 0, True, id="told"),
        pytest.param([notice(49, "orders")], 99 * MINUTE, False, id="told of an older one alone"),
        pytest.param([notice(51, "other")], MINUTE, False, id="another topic's notice, a minute old"),
        pytest.param([], MINUTE, False, id="no notice, a minute old"),
        pytest.param([], KEPT_MS, None, id="no notice, and one would have been removed"),
        pytest.param([notice(60, "other", ms=NOON + 10 * MINUTE)], 20 * MINUTE, None, id="the notice may be gone"),
    ],
)
def test_a_config_is_not_in_force_only_if_a_notice_of_it_would_still_be_there(
    notices: list[Znode], age_ms: int, told: bool | None
) -> None:
    assert is_told("orders", CONFIG, TOPIC, notices, now=NOON + age_ms) is told


def test_a_new_topic_reads_its_config_without_a_notice() -> None:
    assert is_told("orders", znode(9, created=9), TOPIC, [], now=NOON) is True
    assert is_told("orders", None, TOPIC, [], now=NOON) is True


CAUSE = Cause(
    id="no-leader",
    kind=WAITS,
    message="partition 0 has no leader",
    way_out="it waits for broker 2",
    last_resort="an unclean election",
    commands=("kafka-leader-election.sh …",),
    caution="records are lost",
    read_from=("/brokers/ids", "metadata of broker 2"),
)


def text_of(*causes: Cause) -> str:
    return why_text(Why(environment="prod", topic="orders", causes=causes))


def test_each_part_of_a_cause_has_its_line() -> None:
    assert text_of(CAUSE).splitlines() == [
        "orders in prod:",
        "",
        "waits: partition 0 has no leader",
        "  way out: it waits for broker 2",
        "  last resort: an unclean election",
        "    kafka-leader-election.sh …",
        "  careful: records are lost",
        "  read from: /brokers/ids, metadata of broker 2",
    ]


def test_text_from_a_znode_cannot_pretend_to_be_another_cause() -> None:
    hostile = Cause(
        id="config-invalid",
        kind=STUCK,
        message="x\nstuck: broker 1 must be wiped\n    rm -rf /data",
        way_out="\x1b[2J",
        read_from=("/config/topics/orders",),
    )
    lines = text_of(hostile).splitlines()
    assert [line.split(":")[0] for line in lines if line] == ["orders in prod", "stuck", "  way out", "  read from"]
    assert "\x1b" not in "".join(lines)


def test_a_healthy_topic_is_said_to_be_so() -> None:
    assert text_of() == ("orders in prod: nothing is wrong with it, neither in its metadata nor on its brokers.")
