"""Whether brokers heard of a config, by the notices that are left of what they were told."""

from __future__ import annotations

import json

import pytest
from kazoo.protocol.states import ZnodeStat

from topicops.edges.zookeeper.session import Znode
from topicops.features.why.topic_times import KEPT_MS, is_told

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
