"""What apply looks at before it sends anything: all brokers of these worlds are silent, so sending is an error."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import msgspec
import pytest

from fakes import builders
from fakes.changes import audit_origin
from fixtures.simulated import approval_of_all
from fixtures.workspace import Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, lay, state, topic
from fixtures.zookeeper import Chroot
from topicops.edges.home.journal import FileJournal, open_intents, read_journal, registered
from topicops.edges.home.memories import keep_topic_count
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.zookeeper.lease import LEASE, ZooKeeperLease
from topicops.flow import planning, reporting, single_steps
from topicops.flow.applying import Applied
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import EnvironmentRun, open_run, read_environment
from topicops.flow.verifying import record_baseline
from topicops.flow.whole_runs import verify_or_fail
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.errors import ShrunkenWorldError, WrongTargetError
from topicops.model.plans.changes import Change, GateWord
from topicops.model.plans.plan import Approval, Plan
from topicops.model.plans.plan_file import changes_to_json, plan_to_json
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Limits, Policy, Risk, ZooKeeperEndpoint
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.run_result import apply_exit_status

OPEN = builders.environment(
    limits=Limits(deletes_per_run=9, deletes_percent=100), policy=Policy(unattended=Risk.DESTRUCTIVE)
)
OLD_TOPIC = {
    "/brokers/topics/tmp-import": topic({0: [1, 2, 3]}),
    "/brokers/topics/tmp-import/partitions/0/state": state(1, [1, 2, 3]),
}
CREATE, DELETE = builders.create_change("orders"), builders.delete_change("tmp-import")


@pytest.fixture
def silent(workspace: Workspace, chroot: Chroot) -> Workspace:
    """Three registered brokers that nobody reaches, and no topic."""
    lay(chroot.client, BASE)
    workspace.cluster |= {"id": CLUSTER_ID, "zookeeper": {"hosts": chroot.hosts}, "minLiveBrokers": 3}
    workspace.policy |= {"unattended": "destructive"}
    workspace.topic("orders")
    workspace.tombstone("tmp-import")
    workspace.write_environment()
    return workspace


@pytest.fixture
def world(silent: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Three registered brokers and no topic. They fall silent once their addresses and log directories were seen."""
    whole = dict.fromkeys((1, 2, 3), LogDirectories(held={}))
    monkeypatch.setattr(Access, "require_reachable_brokers", lambda *_: None)
    monkeypatch.setattr(BrokerQuestions, "log_directories", lambda *_: whole)
    return silent


def plan_of(chroot: Chroot, *changes: Change) -> Plan:
    found = builders.change_set(changes)
    target = replace(found.target, cluster_id=CLUSTER_ID, chroot=chroot.path)
    return gate(replace(found, target=target), OPEN)


def run_of(world: Workspace, plan: Plan) -> EnvironmentRun:
    """Return a run that came as far as its gate."""
    run = open_run(environment="local", topics=world.folder / "topics", group="topic_pipeline_local", run_id="1")
    run.store.write_text("plan.json", plan_to_json(plan))
    return run


def planned_run(world: Workspace) -> EnvironmentRun:
    """Return a run with a plan of the files and the cluster of now."""
    run = open_run(environment="local", topics=world.folder / "topics", group="topic_pipeline_local", run_id="1")
    planning.make_plan(run, engine="python", states=True)
    return run


def outcomes_of(run: EnvironmentRun, action: str) -> Sequence[Outcome]:
    return run.store.read_value(f"outcomes-{action}.json", tuple[Outcome, ...])


def reported(run: EnvironmentRun, *approvals: Approval) -> str:
    """Return the report of a run after its task of deletes."""
    single_steps.apply(run, actions=["delete"], approvals=approvals)
    single_steps.report(run)
    return reporting.render_report(run, "text")


def test_registered_brokers_that_are_silent_end_apply_before_it_takes_the_lease(
    silent: Workspace, chroot: Chroot
) -> None:
    (silent.folder / "plan.json").write_text(plan_to_json(planned_run(silent).read_plan()), encoding="utf-8")

    ended = silent.apply()

    assert (ended.status, "no broker answers: 127.0.0.1:1: Connection refused" in ended.err) == (1, True), ended.err
    assert chroot.client.exists("/topicops") is None
    assert chroot.client.get_children("/brokers/topics") == []


def test_brokers_that_fall_silent_before_the_first_request_end_apply_with_nothing_changed(
    world: Workspace, chroot: Chroot
) -> None:
    (world.folder / "plan.json").write_text(plan_to_json(planned_run(world).read_plan()), encoding="utf-8")

    ended = world.apply()

    assert (ended.status, "the brokers do not give their cluster id" in ended.err) == (1, True), ended.err
    assert chroot.client.exists(LEASE) is None
    assert chroot.client.get_children("/brokers/topics") == []


def test_an_environment_that_names_another_cluster_by_now_is_a_wrong_target(world: Workspace, chroot: Chroot) -> None:
    run = run_of(world, plan_of(chroot, CREATE))
    world.cluster["id"] = "x9ZkQ0mVTh2c7nUeYw1aBg"
    world.write_environment()

    with pytest.raises(WrongTargetError, match="x9ZkQ0mVTh2c7nUeYw1aBg"):
        single_steps.apply(run)
    assert chroot.client.exists("/topicops") is None


def test_a_world_that_shrank_since_the_plan_is_not_touched(world: Workspace, chroot: Chroot) -> None:
    run = run_of(world, plan_of(chroot, CREATE))
    world.limits["shrinkPercent"] = 10
    world.write_environment()
    keep_topic_count(run.home, CLUSTER_ID, 40)

    with pytest.raises(ShrunkenWorldError, match="0 topics are live, 40 were"):
        single_steps.apply(run)


def test_the_gate_looks_at_the_cluster_after_the_wait_for_the_lease(world: Workspace, chroot: Chroot) -> None:
    run = planned_run(world)
    with ZooKeeperLease(chroot.hosts, run="cli/other", operation="apply all"):
        waiting = Thread(target=single_steps.apply, args=(run,), kwargs={"lock_timeout_s": 20})
        waiting.start()
        time.sleep(1)  # long enough to have looked at three brokers, were it to look before
        chroot.client.delete("/brokers/ids/3")
    waiting.join(30)

    (outcome,) = outcomes_of(run, "create")
    assert (outcome.status, outcome.sent) == (OutcomeStatus.REFUSED, False)
    assert "TOP420: replication factor 3 needs as many live brokers; 2 are live" in outcome.message


def test_nothing_that_may_run_needs_neither_lease_nor_brokers(world: Workspace, chroot: Chroot) -> None:
    held = gate(plan_of(chroot, DELETE).change_set, builders.environment())
    assert [gated.gate for gated in held.changes] == [GateWord.HELD]
    with ZooKeeperLease(chroot.hosts, run="cli/other", operation="apply all"):
        counts = single_steps.apply(run_of(world, held))
    assert counts["not sent"] == 0


def test_an_environment_without_a_lease_is_told_in_the_report(world: Workspace, chroot: Chroot) -> None:
    world.cluster["lease"] = "none"
    world.write_environment()
    run = run_of(world, plan_of(chroot, CREATE, DELETE))

    assert "no lease (cluster.lease, topics/environments/local.yaml:" in reported(run)
    assert chroot.client.exists("/topicops") is None


def test_production_without_a_set_home_is_noted_in_the_report(
    world: Workspace, chroot: Chroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOPICOPS_HOME")
    world.cluster["class"] = "production"
    world.write_environment()
    run = run_of(world, plan_of(chroot, CREATE, DELETE))

    note = "TOPICOPS_HOME is not set, in class production: each copy of the repository has its own audit log"
    assert note in reported(run)
    monkeypatch.setenv("TOPICOPS_HOME", str(run.home))
    again = run_of(world, plan_of(chroot, CREATE, DELETE))
    again.store.remove("notes.json")
    assert note not in reported(again)


def test_what_an_earlier_run_left_open_is_settled_and_told_before_anything_else(
    world: Workspace, chroot: Chroot
) -> None:
    run = run_of(world, plan_of(chroot, CREATE, DELETE))
    leave_open(run)

    assert "ended before it knew what came of create orders: it is not in effect" in reported(run)
    assert open_intents(read_journal(run.store.path("journal-create-1.jsonl"))) == ()
    assert list((run.home / "unsettled" / "local").iterdir()) == []


def test_an_intent_whose_plan_is_gone_is_told_and_stays_open(world: Workspace, chroot: Chroot) -> None:
    run = run_of(world, plan_of(chroot, CREATE, DELETE))
    leave_open(run)
    run.store.write_text("plan.json", plan_to_json(plan_of(chroot, builders.create_change("another"), DELETE)))

    assert "its requests cannot be checked" in reported(run)
    assert len(list((run.home / "unsettled" / "local").iterdir())) == 1


def leave_open(run: EnvironmentRun) -> None:
    """What a run leaves that was killed right after its intent to create."""
    journal = FileJournal(run.store.path("journal-create-1.jsonl"))
    origin = audit_origin("cli/killed", plan=run.read_plan().fingerprint)
    with registered(run.home / "unsettled" / "local", journal.path, origin, audit_lines=0):
        journal.intend([gated for gated in run.read_plan().changes if gated.change.action == "create"])


@pytest.mark.parametrize("unattended", [pytest.param("destructive", id="to run"), pytest.param("notice", id="held")])
def test_a_delete_whose_tombstone_was_taken_back_is_not_sent_and_says_why(
    world: Workspace, chroot: Chroot, unattended: str
) -> None:
    lay(chroot.client, OLD_TOPIC)
    world.policy["unattended"] = unattended
    world.write_environment()
    run = planned_run(world)
    world.path_of("tmp-import").unlink()

    single_steps.apply(run, actions=["delete"], approvals=[approval_of_all(run)])

    (outcome,) = outcomes_of(run, "delete")
    assert (outcome.status, outcome.sent) == (OutcomeStatus.REFUSED, False)
    assert "no file of environment local asks for it (TOP501)" in outcome.message


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        pytest.param({"approvalLasts": "1h"}, "an approval lasts 1 h", id="too old"),
        pytest.param({"approvals": ["parameter"]}, "an approval by question is not accepted", id="another way"),
        pytest.param({"approvers": ["ann"]}, "bob is not one of the approvers", id="not an approver"),
    ],
)
def test_an_approval_that_the_policy_of_now_does_not_count_leaves_the_change_held_and_the_report_says_why(
    world: Workspace, chroot: Chroot, policy: Mapping[str, object], reason: str
) -> None:
    lay(chroot.client, OLD_TOPIC)
    world.policy["unattended"] = "notice"
    world.write_environment()
    run = planned_run(world)
    world.policy |= policy
    world.write_environment()
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1, seconds=1)

    report = reported(run, replace(approval_of_all(run), given_at=an_hour_ago))

    assert outcomes_of(run, "delete") == ()
    assert reason in report
    assert "1 held" in report


def test_deletes_wait_for_a_kind_that_was_to_run_and_left_no_outcome(world: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, OLD_TOPIC)
    run = planned_run(world)

    single_steps.apply(run, actions=["delete"], approvals=[approval_of_all(run)])

    (outcome,) = outcomes_of(run, "delete")
    assert (outcome.status, outcome.sent) == (OutcomeStatus.NOT_SENT, False)
    assert "create was to run and left no outcome" in outcome.message


def test_a_new_gate_forgets_what_an_earlier_try_of_the_run_did(world: Workspace, chroot: Chroot) -> None:
    plan = plan_of(chroot, CREATE)
    run = run_of(world, plan)
    run.store.write_text("changes.json", changes_to_json(plan.change_set))
    done = Outcome(topic="orders", action="create", digest="0" * 64, status=OutcomeStatus.DONE, sent=True)
    run.store.write_value("outcomes-create.json", (done,))
    run.store.write_value("checks.json", (Check(id="V02", topic="orders", verdict=Verdict.HEALTHY),))

    single_steps.gate(run)

    report = single_steps.report(run)
    assert report.summary.startswith("Nothing was applied")


def test_changes_that_cannot_be_verified_end_as_applied_and_not_verified(world: Workspace, chroot: Chroot) -> None:
    plan = plan_of(chroot, CREATE)
    run = run_of(world, plan)
    done = Outcome(topic="orders", action="create", digest=plan.changes[0].digest, status=OutcomeStatus.DONE, sent=True)
    run.store.write_value("outcomes-create.json", (done,))
    environment = read_environment(run)
    away = msgspec.structs.replace(environment.spec.cluster, zookeeper=ZooKeeperEndpoint(connection="not_known"))
    environment = replace(environment, spec=msgspec.structs.replace(environment.spec, cluster=away))

    verify_or_fail(run, run.access(environment), plan, Applied(outcomes=(done,)), interrupted=lambda: False)

    assert apply_exit_status(reporting.run_report(run).summary) == 7
    single_steps.report(run)
    assert "nothing could be verified" in reporting.render_report(run, "text")


def test_verifying_a_plan_for_another_cluster_is_a_wrong_target(world: Workspace) -> None:
    other = gate(builders.change_set([CREATE]), OPEN)
    (world.folder / "plan.json").write_text(plan_to_json(other), encoding="utf-8")

    ended = world.run("verify", "plan.json", "--environment", "local")

    assert (ended.status, "TOP504" in ended.err) == (8, True), ended.err


def test_no_control_character_that_somebody_wrote_reaches_the_terminal(workspace: Workspace) -> None:
    ended = workspace.run("apply", "missing\x1b[31m.json")

    assert (ended.status, "missing\\x1b[31m.json" in ended.err) == (1, True), ended.err


def test_what_another_task_of_the_run_has_begun_to_change_is_no_old_trouble(world: Workspace, chroot: Chroot) -> None:
    expand = builders.expand_change("orders")
    plan = plan_of(chroot, expand)
    run = run_of(world, plan)
    FileJournal(run.store.path("journal-expand-1.jsonl")).intend(plan.changes)

    access = run.access(read_environment(run))
    record_baseline(run, access, builders.snapshot(builders.live_topic("orders")), ["orders"], kind="configure")

    assert not run.store.has("baseline-configure.json")
