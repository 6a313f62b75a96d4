"""20,000 files and 5,000 live topics with the longest names that Kafka takes: all of it works, in linear work."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import znode_tree
from fixtures.proxy import Fate, zookeeper_proxy
from fixtures.workspace import Workspace
from fixtures.zookeeper import Chroot
from topicops.model.plans.plan_file import plan_from_json

log = logging.getLogger(__name__)

FILES, LIVE = 20_000, 5_000
PART = 4
"""What the work is compared with: a quarter of both."""
LONGEST = 249
"""Source: org.apache.kafka.common.internals.Topic#MAX_NAME_LENGTH."""


def name(number: int) -> str:
    return f"many.{number:05}.".ljust(LONGEST, "x")


def write_files(workspace: Workspace, numbers: range) -> None:
    folder = workspace.folder / "topics/tests"
    folder.mkdir(parents=True, exist_ok=True)
    for topic in map(name, numbers):
        text = (
            "apiVersion: topicops/v1\nkind: Topic\n"
            f"metadata: {{name: {topic}, owner: team-tests}}\n"
            "spec: {keyed: false, configs: {retention.ms: 1000}}\n"
        )
        (folder / f"{topic}.yaml").write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Work:
    """What it took to validate and to plan."""

    cpu_s: float
    """Of this process and of those that it started; it does not hang on what else the machine does."""
    requests: int
    """To ZooKeeper."""


def work_of(workspace: Workspace, hosts: str) -> Work:
    """Validate and plan, which both end well."""
    requests = 0

    def count(_: str) -> Fate:
        nonlocal requests
        requests += 1
        return Fate.PASS

    server, _, chroot = hosts.partition("/")
    before = sum(os.times()[:4])
    with zookeeper_proxy(server, count) as proxy:
        workspace.cluster |= {"zookeeper": {"hosts": f"{proxy.hosts}/{chroot}"}}
        ended = [workspace.run("validate", "--environment", "local"), workspace.plan()]
    assert [each.status for each in ended] == [0, 0], [each.err for each in ended]
    return Work(sum(os.times()[:4]) - before, requests)


@pytest.mark.soak
def test_many_files_and_many_live_topics_with_the_longest_names_take_linear_work(
    workspace: Workspace, chroot: Chroot
) -> None:
    workspace.cluster |= {"id": znode_tree.CLUSTER_ID}
    workspace.limits = {"replicasPerRun": 3 * FILES}
    znode_tree.lay(chroot.client, znode_tree.BASE)
    taken: list[Work] = []
    for files, live in (FILES // PART, LIVE // PART), (FILES, LIVE):
        write_files(workspace, range(files))
        there = chroot.client.exists("/brokers/topics").numChildren
        rows = {name(number): {0: (1, 2, 3)} for number in range(there, live)}
        znode_tree.lay_topics(chroot.client, rows, retention_ms="1000")

        taken.append(work_of(workspace, chroot.hosts))

        planned = plan_from_json(Path("plan.json").read_text(encoding="utf-8"))
        assert (len(planned.changes), planned.change_set.blocked) == (files - live, ())
        assert sum(len(topic) + 4 for topic in chroot.client.get_children("/brokers/topics")) == live * (LONGEST + 4)
    log.info("a quarter: %s; all: %s", *taken)
    assert taken[1].requests <= PART * taken[0].requests
    # Quadratic work would be sixteen times as much; the caches of a processor cost something too.
    assert taken[1].cpu_s <= 2 * PART * taken[0].cpu_s
