"""Old and edited plans on real brokers: only what the files, the policy and the cluster of now ask for is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
import yaml
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from fixtures.edited_plans import edit_plan, resealed
from fixtures.live import cluster_spec, create_topics, look, new_admin, remove_topics
from fixtures.workspace import Workspace
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.plans.changes import ConfigureTopic, CreateTopic, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.specs.environment import Risk
from topicops_local.cluster import LocalCluster

WEEK_MS = str(7 * 24 * 3600 * 1000)
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def admin(local_cluster: LocalCluster) -> AdminClient:
    return new_admin(local_cluster.bootstrap_servers)


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """Yield the workspace of the shared cluster; the topics that a test leaves are removed."""
    workspace.cluster = cluster_spec(local_cluster)
    before = look(local_cluster).topics.keys()
    yield workspace
    remove_topics(local_cluster, look(local_cluster).topics.keys() - before)


def by_hand(cluster: LocalCluster, *names: str, partitions: int = 1, **configs: str) -> None:
    new = [NewTopic(name, partitions, 3, config=configs) for name in names]
    create_topics(cluster.bootstrap_servers, *new)


def plan_file(live: Workspace) -> Mapping[str, object]:
    found: Mapping[str, object] = json.loads((live.folder / "plan.json").read_text(encoding="utf-8"))
    return found


def planned(live: Workspace) -> Plan:
    ended = live.plan()
    assert ended.status == 0, ended.err
    return edit_plan(live.folder / "plan.json", lambda plan: plan)


def run_as_safe(gated: GatedChange) -> GatedChange:
    change = replace(gated.change, risk=Risk.SAFE, codes=())
    return replace(gated, change=change, gate=GateWord.RUN, reasons=(), approvable=False)


def topic_of(cluster: LocalCluster, name: str) -> LiveTopic:
    return look(cluster).topics[name]


def test_a_risk_that_was_edited_is_judged_anew(live: Workspace, local_cluster: LocalCluster) -> None:
    by_hand(local_cluster, "ja-short", **{"retention.ms": WEEK_MS})
    live.topic("ja-short", configs={"retention.ms": "1s"})
    assert planned(live).changes[0].gate is GateWord.HELD
    edit_plan(live.folder / "plan.json", lambda plan: resealed(plan, run_as_safe))

    ended = live.apply()

    assert ended.status == 3, ended.err
    assert topic_of(local_cluster, "ja-short").overrides == {"retention.ms": WEEK_MS}


def test_facts_that_were_edited_lift_no_limit_of_deletes(live: Workspace, local_cluster: LocalCluster) -> None:
    names = [f"ja-many-{n}" for n in range(4)]
    by_hand(local_cluster, *names)
    live.limits |= {"deletesPercent": 5}
    live.topic(names[0])
    for name in names[1:]:
        live.tombstone(name)
    planned(live)

    def with_many_topics(plan: Plan) -> Plan:
        cluster = replace(plan.change_set.cluster, managed_topics=1000)
        entries = tuple(replace(gated, approvable=True) for gated in plan.changes)
        return Plan(change_set=replace(plan.change_set, cluster=cluster), changes=entries)

    edit_plan(live.folder / "plan.json", with_many_topics)

    ended = live.approve()

    assert ended.status == 3, ended.err
    assert set(names) <= look(local_cluster).topics.keys()


def test_rows_below_the_replication_factor_are_refused(live: Workspace, local_cluster: LocalCluster) -> None:
    live.policy |= {"minReplicationFactor": 3}
    live.topic("ja-rows", partitions=3)
    honest = planned(live)

    def on_one_broker(gated: GatedChange) -> GatedChange:
        assert isinstance(gated.change, CreateTopic)
        rows = {partition: row[:1] for partition, row in gated.change.assignment.items()}
        return replace(gated, change=replace(gated.change, assignment=rows))

    edited = edit_plan(live.folder / "plan.json", lambda plan: resealed(plan, on_one_broker))

    assert edited.fingerprint != honest.fingerprint
    ended = live.apply()
    assert ended.status == 4, ended.err
    assert "are not 3 brokers (TOP501)" in ended.err
    assert "ja-rows" not in look(local_cluster).topics


def test_a_change_that_no_file_asks_for_is_refused(live: Workspace, local_cluster: LocalCluster) -> None:
    by_hand(local_cluster, "ja-unasked")
    live.policy |= {"unattended": "safe", "alterableConfigs": ["retention.ms", "compression.type"]}
    live.topic("ja-unasked", configs={"retention.ms": "2d"})
    planned(live)

    def with_other_configs(gated: GatedChange) -> GatedChange:
        assert isinstance(gated.change, ConfigureTopic)
        configs = {"cleanup.policy": "compact,delete", "retention.ms": "1"}
        before = dict.fromkeys(configs)
        condition = replace(gated.change.precondition, overrides=before)
        change = replace(gated.change, configs=configs, configs_before=before, precondition=condition)
        return run_as_safe(replace(gated, change=change))

    edit_plan(live.folder / "plan.json", lambda plan: resealed(plan, with_other_configs))

    ended = live.apply()

    assert ended.status == 4, ended.err
    assert "its file asks for something else than the plan (TOP501)" in ended.err
    assert topic_of(local_cluster, "ja-unasked").overrides == {}


def test_a_pause_and_a_removed_file_stop_an_older_plan(live: Workspace, local_cluster: LocalCluster) -> None:
    by_hand(local_cluster, "ja-paused", partitions=2)
    live.topic("ja-paused", partitions=4)
    live.topic("ja-removed")
    planned(live)
    pause(live, "ja-paused", reason="Incident 4711. Hands off.", until="2100-01-01T00:00:00Z")
    live.path_of("ja-removed").unlink()

    ended = live.apply()

    assert ended.status == 4, ended.err
    assert "its file pauses the topic (TOP501)" in ended.err
    assert "Incident 4711" in ended.err
    assert "no file of environment local asks for it (TOP501)" in ended.err
    assert topic_of(local_cluster, "ja-paused").partitions == 2
    assert "ja-removed" not in look(local_cluster).topics


def pause(live: Workspace, name: str, **lifecycle: object) -> None:
    document = yaml.safe_load(live.path_of(name).read_text(encoding="utf-8"))
    document["lifecycle"] = {"state": "paused", **lifecycle}
    live.path_of(name).write_text(yaml.safe_dump(document), encoding="utf-8")


def as_tombstone(live: Workspace, name: str, **lifecycle: object) -> None:
    live.tombstone(name)
    document = yaml.safe_load(live.path_of(name).read_text(encoding="utf-8"))
    document["lifecycle"] |= lifecycle
    live.path_of(name).write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("lifecycle", "policy", "reason"),
    [
        pytest.param(
            {"topicIds": {"local": OTHER_ID}}, {}, "TOP411: the tombstone is for topic id AAAA", id="topicIds"
        ),
        pytest.param(
            {"notBefore": "2100-01-01T00:00:00Z"}, {}, "TOP412: the tombstone holds until 2100", id="notBefore"
        ),
        pytest.param({}, {"protectedTopics": ["ja-*"]}, "is protected by ja-*", id="protected"),
    ],
)
def test_a_delete_that_the_files_of_now_exclude_is_refused(
    live: Workspace,
    local_cluster: LocalCluster,
    lifecycle: Mapping[str, object],
    policy: Mapping[str, Sequence[str]],
    reason: str,
) -> None:
    by_hand(local_cluster, "ja-doomed")
    as_tombstone(live, "ja-doomed")
    planned(live)
    as_tombstone(live, "ja-doomed", **lifecycle)
    live.policy |= policy

    ended = live.approve()

    assert ended.status in (1, 4), ended.err
    assert reason in ended.err
    assert "ja-doomed" in look(local_cluster).topics


def test_a_default_of_the_brokers_that_moved_stops_what_was_judged_by_it(
    live: Workspace, local_cluster: LocalCluster, admin: AdminClient
) -> None:
    by_hand(local_cluster, "ja-default", **{"retention.ms": WEEK_MS})
    live.topic("ja-default", configs={"retention.ms": None})
    planned(live)

    with broker_default(admin, "log.retention.ms", "3600000"):
        ended = live.approve()

    assert ended.status == 4, ended.err
    was = f"the brokers' default of retention.ms was {WEEK_MS} when the plan was made, and is 3600000 now (TOP501)"
    assert was in ended.err
    assert topic_of(local_cluster, "ja-default").overrides == {"retention.ms": WEEK_MS}


@contextmanager
def broker_default(admin: AdminClient, name: str, value: str) -> Iterator[None]:
    """Another default of each broker, for a while."""
    alter_brokers(admin, ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    try:
        yield
    finally:
        alter_brokers(admin, ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE))


def alter_brokers(admin: AdminClient, entry: ConfigEntry) -> None:
    for broker in ("1", "2", "3"):  # the client takes one in a call
        resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(60)


def test_a_plan_without_files_is_refused_unless_the_policy_allows_it(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    live.topic("ja-carried")
    planned(live)
    live.path_of("ja-carried").unlink()

    refused = live.apply()
    assert refused.status == 1, refused.err
    assert "nothing asks for the plan's changes; nothing was sent" in refused.err

    live.policy |= {"plansWithoutFiles": "allow"}
    held = live.apply()
    assert held.status == 3, held.err
    assert "ja-carried" not in look(local_cluster).topics

    ended = live.approve()
    assert ended.status == 0, ended.err
    assert "ja-carried" in look(local_cluster).topics
