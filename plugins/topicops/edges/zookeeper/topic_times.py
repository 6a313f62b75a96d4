"""When the znodes of one topic were written, and whether brokers were told of its configs. Reads only."""

from __future__ import annotations

import msgspec

from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.reader import CONFIGS, CONTROLLER, MARKERS, REASSIGNMENT, TOPICS, ZooKeeperReader
from topicops.edges.zookeeper.session import Znode
from topicops.model.why_facts import TopicTimes

CHANGES = "/config/changes"
KEPT_MS = 15 * 60_000
"""Brokers remove notifications that are older, at the next one.

Source: kafka.common.ZkNodeChangeNotificationListener#purgeObsoleteNotifications (1.0 to 3.9).
"""


class _Change(msgspec.Struct):
    entity_path: str = ""


def topic_times(reader: ZooKeeperReader, topic: str) -> TopicTimes:
    """Raises ``ClusterError`` when the session is lost."""
    return reader.connected(lambda: _topic_times(reader, topic))


def _topic_times(reader: ZooKeeperReader, topic: str) -> TopicTimes:
    session = reader.session
    config, marker, znode = (session.get(f"{folder}/{topic}") for folder in (CONFIGS, MARKERS, TOPICS))
    ids = [int(name) for name in session.children(f"{TOPICS}/{topic}/partitions") or () if name.isdecimal()]
    states = {p: session.get(f"{TOPICS}/{topic}/partitions/{p}/state") for p in sorted(ids)}
    controller, moves = session.get(CONTROLLER), session.get(REASSIGNMENT)
    rows = znodes.decode_reassignment(REASSIGNMENT, moves.data if moves else None)
    return TopicTimes(
        config=config.mtime if config else None,
        marker=marker.stat.ctime if marker else None,
        states={p: state.mtime for p, state in states.items() if state is not None},
        is_config_told=_is_told(reader, topic, config, znode),
        targets={row.partition: tuple(row.replicas) for row in rows if row.topic == topic},
        controller=znodes.decode_controller(CONTROLLER, controller.data).broker_id if controller else None,
    )


def _is_told(reader: ZooKeeperReader, topic: str, config: Znode | None, znode: Znode | None) -> bool | None:
    """A topic that was created reads its configs without a notification: its config is older than the topic."""
    if config is None or znode is None or config.mzxid < znode.czxid:
        return True
    session = reader.session
    found = {name: session.get(f"{CHANGES}/{name}") for name in session.children(CHANGES) or ()}
    notices = [notice for notice in found.values() if notice is not None]
    if any(notice.czxid > config.mzxid and _names(notice, topic) for notice in notices):
        return True
    older = any(notice.czxid < config.mzxid for notice in notices)
    newest = max((notice.mtime for notice in notices), default=config.mtime)
    # A notice of this config would still be there, if an older one is, or if it would not be old enough to go.
    return False if older or newest - config.mtime < KEPT_MS else None


def _names(notice: Znode, topic: str) -> bool:
    try:
        change = msgspec.json.decode(notice.data or b"", type=_Change)
    except msgspec.MsgspecError:
        return False
    return change.entity_path == f"topics/{topic}"
