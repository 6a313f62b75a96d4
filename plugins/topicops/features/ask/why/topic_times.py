"""Times of the znodes of one topic, and whether brokers got notice of its configs. Reads only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.reader import CONFIGS, CONTROLLER, MARKERS, REASSIGNMENT, TOPICS, ZooKeeperReader
from topicops.edges.zookeeper.session import Znode, ZooKeeperSession
from topicops.features.ask.why.values import TopicTimes
from topicops.model.ports import LiveReader

CHANGES = "/config/changes"
KEPT_MS = 15 * 60_000
"""Brokers remove notifications that are older, at the next one.

Source: kafka.common.ZkNodeChangeNotificationListener#purgeObsoleteNotifications (1.0 to 3.9).
"""


class _Change(msgspec.Struct):
    entity_path: str = ""


def topic_times(reader: LiveReader, topic: str) -> TopicTimes | None:
    """Return None for another source. Raises ``UndecodableZnodeError`` for what Kafka cannot read either."""
    if not isinstance(reader, ZooKeeperReader):
        return None
    return reader.connected(lambda: _topic_times(reader.session, topic))


def _topic_times(session: ZooKeeperSession, topic: str) -> TopicTimes:
    config, marker, znode = (session.get(f"{folder}/{topic}") for folder in (CONFIGS, MARKERS, TOPICS))
    ids = [int(name) for name in session.children(f"{TOPICS}/{topic}/partitions") or () if name.isdecimal()]
    read = {p: session.get(f"{TOPICS}/{topic}/partitions/{p}/state") for p in sorted(ids)}
    states = {p: state.mtime for p, state in read.items() if state is not None}
    notices = [notice for name in session.children(CHANGES) or () if (notice := session.get(f"{CHANGES}/{name}"))]
    controller, moves = session.get(CONTROLLER), session.get(REASSIGNMENT)
    rows = znodes.decode_reassignment(REASSIGNMENT, moves.data if moves else None)
    found = [each for each in (config, marker, controller, *notices) if each is not None]
    now = max([int(time.time() * 1000), *states.values(), *(each.mtime for each in found)])
    return TopicTimes(
        config=config.mtime if config else None,
        marker=marker.stat.ctime if marker else None,
        states=states,
        is_config_told=is_told(topic, config, znode, notices, now=now),
        targets={row.partition: tuple(row.replicas) for row in rows if row.topic == topic},
        controller=znodes.decode_controller(CONTROLLER, controller.data).broker_id if controller else None,
        now=now,
    )


def is_told(
    topic: str, config: Znode | None, znode: Znode | None, notices: Sequence[Znode], *, now: int
) -> bool | None:
    """Return whether brokers heard of the topic's newest config; None means that a notice of it may be gone.

    Args:
        config: The topic's config, and ``znode`` the topic itself; None means that there is none.
        notices: All that is in ``/config/changes``.
    """
    # A topic that is created reads its configs without a notification: its config is older than the topic.
    if config is None or znode is None or config.mzxid < znode.czxid:
        return True
    for notice in notices:
        with suppress(msgspec.MsgspecError):
            change = msgspec.json.decode(notice.data or b"", type=_Change)
            if notice.czxid > config.mzxid and change.entity_path == f"topics/{topic}":
                return True
    is_older_one_left = any(notice.czxid < config.mzxid for notice in notices)
    return False if is_older_one_left or now - config.mtime < KEPT_MS else None
