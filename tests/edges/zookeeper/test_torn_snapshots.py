"""A snapshot never shows half of a change, however fast the cluster changes."""

import logging
import time
from dataclasses import dataclass, field

import pytest

from fixtures import znode_tree
from fixtures.churn import churn, generation
from fixtures.single_reader import SingleReader
from fixtures.zookeeper import Chroot
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.cluster.snapshot import ClusterSnapshot

log = logging.getLogger(__name__)

BUSY = [f"busy-{number}" for number in range(20)]
CALM = [f"calm-{number}" for number in range(20)]
HANGING_S = 30.0


@dataclass(slots=True)
class Tally:
    snapshots: int = 0
    unstable: int = 0
    """Snapshots with a topic that is marked."""
    longest_s: float = 0.0
    torn: list[str] = field(default_factory=list)
    generations: set[int] = field(default_factory=set)
    unstable_topics: set[str] = field(default_factory=set)

    def add(self, live: ClusterSnapshot, seconds: float) -> None:
        self.snapshots += 1
        self.longest_s = max(self.longest_s, seconds)
        marked = {name for name, topic in live.topics.items() if topic.unstable}
        self.unstable += bool(marked)
        self.unstable_topics |= marked
        for name, topic in live.topics.items():
            number = topic.assignment[0][0]
            self.generations.add(number)
            if name not in marked and topic.overrides != {"retention.ms": str(number)}:
                self.torn.append(f"{name}: replica {number}, {topic.overrides}")


@pytest.mark.parametrize("writes_per_s", [200, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("reader_kind", "snapshots"),
    [
        pytest.param(ZooKeeperReader, 20, id="in bulk"),
        pytest.param(SingleReader, 10, id="one by one"),
        pytest.param(ZooKeeperReader, 10_000, id="in bulk, many", marks=pytest.mark.soak),
        pytest.param(SingleReader, 1_500, id="one by one, many", marks=pytest.mark.soak),
    ],
)
def test_no_topic_is_torn_while_topic_and_config_change_together(
    chroot: Chroot, reader_kind: type[ZooKeeperReader], writes_per_s: int, snapshots: int
) -> None:
    znode_tree.lay(chroot.client, znode_tree.BASE)
    for name in BUSY + CALM:
        znode_tree.lay(chroot.client, generation(0, name))
    # One topic takes half of all writes: what never rests must be marked, or be whole all the same.
    hot = [name for busy in BUSY[1:] for name in (BUSY[0], busy)]
    tally = Tally()
    with churn(chroot.hosts, hot, writes_per_s=writes_per_s) as failed, reader_kind(chroot.hosts) as reader:
        started = time.monotonic()
        while tally.snapshots < snapshots:
            begun = time.monotonic()
            live = reader.snapshot()
            tally.add(live, time.monotonic() - begun)
            assert sorted(live.topics) == sorted(BUSY + CALM)
        written_per_s = max(tally.generations) / (time.monotonic() - started)
    assert not failed.is_set()
    log.info(
        "%s: %d snapshots at %.0f of %d writes/s: %d torn, %d with an unstable topic, longest %.0f ms",
        reader_kind.__name__, tally.snapshots, written_per_s, writes_per_s, len(tally.torn), tally.unstable,
        tally.longest_s * 1000,
    )  # fmt: skip
    assert tally.torn == []
    assert len(tally.generations) > snapshots / 10, "the writer did not write while the snapshots were taken"
    assert not tally.unstable_topics & set(CALM)
    assert tally.longest_s < HANGING_S
