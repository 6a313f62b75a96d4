"""``topicops doctor`` where a world is not as it should be: each trouble is a finding, and the rest is looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fixtures.workspace import Ended, Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, config, lay, state, topic
from fixtures.zookeeper import Chroot

WHOLE = {
    **BASE,
    "/brokers/topics/fine": topic({0: [1]}),
    "/brokers/topics/fine/partitions/0/state": state(1, [1]),
    "/config/topics/fine": config(),
}


def examined(workspace: Workspace) -> tuple[Ended, dict[str, Any]]:
    """How the command ended, and its findings by id; the brokers of this world answer nobody."""
    ended = workspace.run("doctor", "--environment", "local", "--format", "json")
    findings = {finding["id"]: finding for finding in json.loads(ended.out)["findings"]}
    assert findings.pop("brokers")["severity"] == "error"
    return ended, findings


def test_silent_brokers_leave_the_rest_to_be_looked_at(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, WHOLE)
    workspace.aim(chroot.hosts)

    ended, findings = examined(workspace)

    # The tree's brokers registered long before their clocks were set.
    assert (ended.status, findings.keys()) == (1, {"clock-skew"})
    assert "auto-create" in json.loads(ended.out)["rules_not_applied"]


@pytest.mark.usefixtures("impatient")
def test_an_unreachable_zookeeper_is_a_finding_with_its_address(workspace: Workspace) -> None:
    workspace.aim("127.0.0.1:1/kafka")

    ended, findings = examined(workspace)

    assert (ended.status, findings.keys()) == (1, {"zookeeper"})
    assert "127.0.0.1:1" in findings["zookeeper"]["message"]
    assert "no-leader" in json.loads(ended.out)["rules_not_applied"]


@pytest.mark.parametrize(
    ("hosts_behind", "cluster_id", "znodes", "code", "words"),
    [
        pytest.param("/kafak", CLUSTER_ID, {}, "TOP504", "wrong chroot", id="wrong chroot"),
        pytest.param("", "another", {}, "TOP504", "another", id="another cluster"),
        pytest.param(
            "", CLUSTER_ID, {"/controller": '{"version":2,"brokerid":9,"kraftControllerEpoch":3}'}, "TOP801", "KRaft",
            id="a KRaft controller",
        ),
    ],
)  # fmt: skip
def test_a_wrong_target_is_a_finding_with_its_code(
    workspace: Workspace,
    chroot: Chroot,
    hosts_behind: str,
    cluster_id: str,
    znodes: dict[str, str],
    code: str,
    words: str,
) -> None:
    lay(chroot.client, {**WHOLE, **znodes})
    workspace.aim(f"{chroot.hosts}{hosts_behind}", cluster_id=cluster_id)

    ended, findings = examined(workspace)

    assert (ended.status, findings["snapshot"]["code"]) == (1, code)
    assert words in findings["snapshot"]["message"]


def test_topics_of_another_cluster_are_not_looked_at_and_its_id_is_named(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, WHOLE)
    workspace.aim(chroot.hosts, cluster_id="another")

    shown = workspace.run("doctor", "--environment", "local").out

    assert f"cluster {CLUSTER_ID}, which is not the environment's; its topics were not read" in shown
    assert "not looked at what a plan needs" in shown
    assert "does not read all" not in shown


def test_znodes_that_stop_every_snapshot_are_all_named(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, {**WHOLE, "/brokers/topics/one": "", "/brokers/topics/two": "[]"})
    workspace.aim(chroot.hosts)

    ended, findings = examined(workspace)

    assert ended.status == 1
    assert findings["undecodable-znode"]["places"] == [
        "/brokers/topics/one: holds no data",
        "/brokers/topics/two: holds other JSON than Kafka writes: Expected `object`, got `array`",
    ]
    assert "no broker can be Kafka's controller" in findings["undecodable-znode"]["fix"]


def test_text_holds_no_control_character_of_a_znodes_name(workspace: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, {**WHOLE, "/config/topics/gh\u202eost": config()})
    workspace.aim(chroot.hosts)

    out = workspace.run("doctor", "--environment", "local").out

    assert "\u202e" not in out
    assert "gh\\u202eost" in out
