"""Apply as a whole on a cluster in memory: what it does, in which order, and what keeps it from sending anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes import builders
from fakes.builders import NOW
from fakes.changes import audit_origin, mutation_of
from fakes.fake_ports import FakeAuditLog
from fixtures.simulated import CLUSTER_ID, Simulated, approval_of_all, outcomes_of
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog, log_path
from topicops.edges.home.journal import FileJournal, open_intents, open_journals_folder, read_journal, registered
from topicops.edges.home.memories import keep_topic_count, topic_count
from topicops.flow import planning, reporting, single_steps, verifying
from topicops.flow.runs.access import PORT_WRAPPERS, Access, PortWrappers
from topicops.flow.runs.run import EnvironmentRun, audit_folder, notes_of
from topicops.model.errors import ArtifactError, ExitStatus, ShrunkenWorldError, UsageError, WrongTargetError
from topicops.model.plans.changes import ACTIONS, Action, CreateTopic, GateWord
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.ports import Lease
from topicops.model.runs.results import NO_FAILURE, Outcome, OutcomeStatus
from topicops.model.specs.environment import Risk
from topicops.steps.planning.gate import gate

DONE, REFUSED, NOT_SENT = OutcomeStatus.DONE, OutcomeStatus.REFUSED, OutcomeStatus.NOT_SENT


def wants_a_create_and_a_delete(simulated: Simulated) -> EnvironmentRun:
    simulated.workspace.topic("orders")
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("old", (1, 2, 3))
    return simulated.planned()


def test_everything_is_in_its_order_from_the_lease_to_the_line_in_the_audit_log(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    simulated.apply(run)
    assert [outcome.status for outcome in outcomes_of(run)] == [DONE, DONE]
    assert simulated.events == [
        "take the lease",
        "catch up",
        "snapshot",
        "confirm the lease",
        "get ready",
        "intent",
        "confirm the lease",
        "request create",
        "audit line",
        "outcome",
        "get ready",
        "ask for activity",
        "intent",
        "confirm the lease",
        "request delete",
        "audit line",
        "outcome",
        "give the lease back",
    ]


@pytest.mark.parametrize(("field", "other"), [("cluster_id", "another-cluster"), ("chroot", "/another")])
def test_a_plan_for_another_cluster_or_chroot_is_a_wrong_target(simulated: Simulated, field: str, other: str) -> None:
    run = wants_a_create_and_a_delete(simulated)
    plan = run.read_plan()
    elsewhere = replace(plan.change_set, target=replace(plan.target, **{field: other}))
    run.store.write_text("plan.json", plan_to_json(gate(elsewhere, builders.environment())))
    with pytest.raises(WrongTargetError, match="the plan is for cluster"):
        simulated.apply(run, approved=True)
    assert simulated.events == []


def test_an_environment_that_names_another_cluster_by_now_is_a_wrong_target(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    simulated.workspace.cluster["id"] = "x9ZkQ0mVTh2c7nUeYw1aBg"
    with pytest.raises(WrongTargetError, match="the environment names cluster x9ZkQ0mVTh2c7nUeYw1aBg"):
        simulated.apply(run)
    assert simulated.events == []


def test_brokers_of_another_cluster_than_was_read_are_a_wrong_target(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    simulated.brokers_cluster_id = "another-cluster"
    with pytest.raises(WrongTargetError, match="the bootstrap servers belong to cluster another-cluster"):
        simulated.apply(run)
    assert simulated.cluster.requests == []


@pytest.mark.parametrize("actions", [ACTIONS, ("create",)], ids=["one task", "a task before that of deletes"])
@pytest.mark.parametrize("role", ["connection", "applier", "deleter"])
def test_a_connection_of_the_plan_that_cannot_be_used_is_found_before_anything_is_read(
    simulated: Simulated, role: str, actions: tuple[Action, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wants_a_create_and_a_delete(simulated)
    by_token = {"bootstrap.servers": "b1:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    monkeypatch.setenv("AIRFLOW_CONN_TOKEN", json.dumps({"conn_type": "kafka", "extra": by_token}))
    kafka = {"bootstrapServers": "127.0.0.1:1", role: "token"}
    simulated.workspace.cluster = {**simulated.workspace.cluster, "kafka": kafka}

    with pytest.raises(UsageError, match=rf"kafka\.{role}, .* 'token' cannot be used: OAUTHBEARER needs a place"):
        simulated.apply(run, actions=actions, approved=True)

    assert simulated.events == []
    assert simulated.cluster.requests == []


def test_nothing_is_planned_over_a_connection_that_cannot_be_used(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_java = {"bootstrap.servers": "b1:9092", "sasl.jaas.config": "PlainLoginModule required;"}
    monkeypatch.setenv("AIRFLOW_CONN_JAVA", json.dumps({"conn_type": "kafka", "extra": by_java}))
    simulated.workspace.cluster = {**simulated.workspace.cluster, "kafka": {"connection": "java"}}
    simulated.workspace.topic("orders")

    run = simulated.opened("1")
    with pytest.raises(UsageError, match=r"sasl\.jaas\.config is a property of Java clients"):
        planning.make_plan(run, engine="python")

    assert simulated.events == []


def test_a_change_that_does_not_run_needs_no_connection(simulated: Simulated) -> None:
    simulated.workspace.policy["unattended"] = "notice"
    run = wants_a_create_and_a_delete(simulated)
    kafka = {"bootstrapServers": "127.0.0.1:1", "deleter": "of-another-job"}
    simulated.workspace.cluster = {**simulated.workspace.cluster, "kafka": kafka}

    simulated.apply(run)

    assert [outcome.status for outcome in outcomes_of(run)] == [DONE]


def test_a_cluster_that_lost_its_topics_is_not_touched(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    keep_topic_count(run.home, CLUSTER_ID, 40)
    simulated.workspace.limits["shrinkPercent"] = 10
    with pytest.raises(ShrunkenWorldError, match="1 topic is live, 40 were"):
        simulated.apply(run)
    assert simulated.cluster.requests == []


def test_topics_that_a_run_deletes_are_counted_as_gone_before_the_first_request(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    counts: list[int | None] = []
    simulated.cluster.before_next_request(lambda: counts.append(topic_count(run.home, CLUSTER_ID)))
    simulated.apply(run)
    assert counts == [0]


def test_a_plan_without_files_is_refused(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    forget_files(simulated)
    with pytest.raises(UsageError, match="nothing asks for the plan's changes; nothing was sent"):
        simulated.apply(run, approved=True)
    assert simulated.events == []


def test_where_the_policy_allows_a_plan_without_files_each_change_needs_an_approval(simulated: Simulated) -> None:
    simulated.workspace.policy |= {"plansWithoutFiles": "allow", "unattended": "risky"}
    simulated.workspace.topic("orders")
    run = simulated.planned()
    forget_files(simulated)
    simulated.apply(run)
    (refused,) = outcomes_of(run)
    assert (refused.status, refused.sent) == (REFUSED, False)
    assert "risk destructive, up to risky allowed without an approval" in refused.message
    simulated.apply(run, approved=True)
    assert [outcome.status for outcome in outcomes_of(run)] == [DONE]


def forget_files(simulated: Simulated) -> None:
    for path in (simulated.workspace.folder / "topics" / "tests").iterdir():
        path.unlink()


def test_an_approval_that_the_policy_of_now_does_not_count_lets_nothing_run(simulated: Simulated) -> None:
    simulated.workspace.policy["unattended"] = "safe"
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("old", (1, 2, 3))
    run = simulated.planned()
    simulated.workspace.policy["approvers"] = ["ann"]
    simulated.apply(run, approved=True)
    assert (simulated.cluster.requests, outcomes_of(run)) == ([], [])
    simulated.workspace.policy["approvers"] = ["ann", "bob"]
    simulated.apply(run, approved=True)
    assert [outcome.status for outcome in outcomes_of(run)] == [DONE]


def test_an_audit_log_that_cannot_be_continued_keeps_everything_unsent(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    log = log_path(audit_folder(run.home), "local")
    log.parent.mkdir(parents=True)
    log.write_text("not a line of the log\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="nothing is sent"):
        simulated.apply(run)
    assert simulated.cluster.requests == []


def test_an_audit_line_that_is_missing_after_the_last_change_is_in_the_report_and_comes_with_the_next_run(
    simulated: Simulated,
) -> None:
    simulated.workspace.topic("orders")
    token = PORT_WRAPPERS.set(PortWrappers(audit=lambda _: FakeAuditLog(disk_full=True)))
    try:
        ended = simulated.workspace.run("apply", "--environment", "local", "--yes")
    finally:
        PORT_WRAPPERS.reset(token)
    assert "the audit log cannot be written" in ended.out
    assert "the next run adds what the audit log lacks" in ended.out
    simulated.workspace.topic("payments")
    simulated.workspace.run("apply", "--environment", "local", "--yes")
    lines = read_audit_log(audit_folder(simulated.workspace.folder / "home"), "local").lines
    assert [line.topic for line in lines] == ["orders", "payments"]


def test_the_journal_is_registered_as_open_while_requests_leave(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    seen: list[int] = []
    folder = open_journals_folder(run.home, run.environment)
    simulated.cluster.before_next_request(lambda: seen.append(len(list(folder.glob("*.json")))))
    simulated.apply(run)
    assert (seen, list(folder.glob("*.json"))) == ([1], [])


def test_what_an_earlier_run_left_open_gets_its_outcome_and_its_line_before_anything_is_sent(
    simulated: Simulated,
) -> None:
    earlier = wants_a_create_and_a_delete(simulated)
    killed_after_its_create(simulated, earlier)
    run = simulated.planned("2")
    lines_at_first_request: list[int] = []
    log = log_path(audit_folder(run.home), "local")
    simulated.cluster.before_next_request(lambda: lines_at_first_request.append(log.read_text().count("\n")))
    simulated.apply(run)
    assert lines_at_first_request == [1]
    assert open_intents(read_journal(earlier.store.path("journal-all-1.jsonl"))) == ()
    assert [line.count("create") > 0 for line in log.read_text().splitlines()] == [True, False]


def test_a_line_of_an_earlier_try_is_not_taken_for_that_of_the_try_that_was_killed(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    audit_create(run, at=NOW + timedelta(hours=1))
    killed_after_its_create(simulated, run, audit_lines=1)

    simulated.apply(simulated.planned("2"))

    assert audited_actions(run) == ["create", "create", "delete"]


def test_the_line_of_a_run_whose_clock_went_back_is_not_written_twice(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    killed_after_its_create(simulated, run)
    audit_create(run, at=NOW - timedelta(hours=1))

    simulated.apply(simulated.planned("2"))

    assert audited_actions(run) == ["create", "delete"]


def audit_create(run: EnvironmentRun, *, at: datetime) -> None:
    """The line for the create of this run, which was written at that time."""
    (created,) = [gated for gated in run.read_plan().changes if gated.change.action == "create"]
    sent = mutation_of(created.change, digest=created.digest)
    FileAuditLog(audit_folder(run.home), origin_of(run), now=lambda: at).append([sent])


def audited_actions(run: EnvironmentRun) -> list[str]:
    return [line.action for line in read_audit_log(audit_folder(run.home), "local").lines]


def origin_of(run: EnvironmentRun) -> AuditOrigin:
    return audit_origin(run.name, plan=run.read_plan().fingerprint)


def killed_after_its_create(simulated: Simulated, run: EnvironmentRun, *, audit_lines: int = 0) -> None:
    """What a run leaves whose process ended between its request and the answer."""
    plan = run.read_plan()
    journal = FileJournal(run.store.path("journal-all-1.jsonl"))
    created = [gated for gated in plan.changes if gated.change.action == "create"]
    with registered(
        open_journals_folder(run.home, run.environment), journal.path, origin_of(run), audit_lines=audit_lines
    ):
        journal.intend(created)
        simulated.cluster.create([gated.change for gated in created])  # type: ignore[misc]  # creates alone


def test_deletes_of_their_own_task_wait_for_the_tasks_before(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    simulated.apply(run, actions=["delete"])
    (waiting,) = outcomes_of(run)
    assert (waiting.status, waiting.sent) == (NOT_SENT, False)
    assert "create was to run and left no outcome" in waiting.message
    assert simulated.cluster.requests == []


@pytest.mark.parametrize("status", sorted(set(OutcomeStatus).difference(NO_FAILURE)))
def test_deletes_of_their_own_task_wait_after_each_outcome_that_is_a_failure(
    simulated: Simulated, status: OutcomeStatus
) -> None:
    run = wants_a_create_and_a_delete(simulated)
    before = Outcome(topic="orders", action="create", digest="0" * 64, status=status)
    run.store.write_value("outcomes-create.json", (before,))
    simulated.apply(run, actions=["delete"])
    (waiting,) = (outcome for outcome in outcomes_of(run) if outcome.action == "delete")
    assert (waiting.status, waiting.sent) == (NOT_SENT, False)
    assert f"create of orders ended {status}" in waiting.message
    assert simulated.cluster.requests == []


def test_nothing_that_may_run_takes_no_lease(simulated: Simulated) -> None:
    simulated.workspace.policy["unattended"] = "safe"
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("old", (1, 2, 3))
    simulated.apply(simulated.planned())
    assert simulated.events == []


def test_the_rows_that_the_plan_shows_are_sent(simulated: Simulated) -> None:
    simulated.workspace.topic("orders", partitions=3)
    run = simulated.planned()
    (shown,) = (gated.change for gated in run.read_plan().changes)
    simulated.cluster.put_topic("made-since", (1, 2, 3), (1, 2, 3), (1, 2, 3))  # another plan would place otherwise
    simulated.apply(run)
    assert isinstance(shown, CreateTopic)
    assert dict(simulated.cluster.live("orders").assignment) == dict(shown.assignment)


def test_the_share_of_deletes_counts_all_tombstones_of_the_files_of_now(simulated: Simulated) -> None:
    for name in ("old", "older", "oldest"):
        simulated.cluster.put_topic(name, (1, 2, 3))
    simulated.workspace.tombstone("old")
    simulated.workspace.limits["deletesPercent"] = 1
    run = simulated.planned()
    assert [gated.gate for gated in run.read_plan().changes] == [GateWord.RUN]
    simulated.workspace.tombstone("older")
    simulated.workspace.tombstone("oldest")
    simulated.apply(run)
    (refused,) = outcomes_of(run)
    assert (refused.status, simulated.cluster.requests) == (REFUSED, [])
    assert "3 deletes, 1 allowed: 1 % of 3 managed topics" in refused.message


def test_approving_another_plans_fingerprint_is_bad_usage(simulated: Simulated) -> None:
    wants_a_create_and_a_delete(simulated)
    simulated.workspace.policy["unattended"] = "safe"
    assert simulated.workspace.plan().status == 0
    ended = simulated.workspace.apply("--approve", "0" * 64)
    assert (ended.status, "is not how this plan's fingerprint" in ended.err) == (1, True), ended.err
    assert simulated.cluster.requests == []


def test_an_author_does_not_approve_alone_what_is_too_risky_by_now(simulated: Simulated) -> None:
    simulated.workspace.policy |= {"unattended": "safe", "authorApproves": "notice"}
    simulated.workspace.topic("clicks", partitions=2)
    simulated.cluster.put_topic("clicks", (1, 2, 3))
    simulated.cluster.defaults["cleanup.policy"] = "delete"
    run = simulated.planned()
    assert [gated.change.risk for gated in run.read_plan().changes] == [Risk.NOTICE]
    simulated.workspace.topic("clicks", partitions=2, keyed=True)
    approval = replace(approval_of_all(run), authors=frozenset({"bob"}))
    single_steps.apply(run, approvals=[approval])
    assert simulated.cluster.requests == []
    single_steps.apply(run, approvals=[replace(approval, approver="ann")])
    assert [outcome.status for outcome in outcomes_of(run)] == [DONE]


def test_each_line_of_the_audit_log_names_who_approved_its_own_change(simulated: Simulated) -> None:
    simulated.workspace.policy |= {"unattended": "notice", "approvals": ["question", "review"]}
    for name in ("old", "older"):
        simulated.workspace.tombstone(name)
        simulated.cluster.put_topic(name, (1, 2, 3))
    simulated.workspace.topic("orders")
    run = simulated.planned()
    digests = {gated.change.topic: frozenset({gated.digest}) for gated in run.read_plan().changes}
    of_alice = replace(builders.approval(way="review"), digests=digests["old"], signature="alice (review)")
    single_steps.apply(run, approvals=[of_alice, replace(builders.approval(), digests=digests["older"])])
    lines = read_audit_log(audit_folder(run.home), "local").lines
    assert {line.topic: line.approver for line in lines} == {
        "orders": None,
        "old": "alice (review)",
        "older": "bob (by question)",
    }


def test_what_an_earlier_run_has_written_to_the_audit_log_is_not_written_again(simulated: Simulated) -> None:
    earlier = wants_a_create_and_a_delete(simulated)
    killed_after_its_create(simulated, earlier)
    (entry,) = open_journals_folder(earlier.home, earlier.environment).glob("*.json")
    kept = entry.read_bytes()
    journal = earlier.store.path("journal-all-1.jsonl")
    intent = journal.read_bytes()
    simulated.apply(simulated.planned("2"))
    entry.write_bytes(kept)  # as if the process had ended between the two lines
    journal.write_bytes(intent)
    simulated.workspace.topic("another")
    simulated.apply(simulated.planned("3"))
    log = log_path(audit_folder(earlier.home), "local").read_text()
    assert [log.count(f'"topic":"{name}"') for name in ("orders", "old", "another")] == [1, 1, 1]


def test_a_try_that_a_later_try_overtook_leaves_no_outcomes(simulated: Simulated) -> None:
    run = wants_a_create_and_a_delete(simulated)
    later = run.store.path("journal-all-2.jsonl")
    simulated.cluster.before_next_request(lambda: later.write_text(""))
    counts = single_steps.apply(run)
    assert (sum(counts.values()), outcomes_of(run)) == (2, [])


# --- errors that no code expects --------------------------------------------------------------------------------------


def no_thread(*_: object, **__: object) -> None:
    raise RuntimeError("can't start new thread")


def full_disk(*_: object, **__: object) -> None:
    raise ArtifactError("report.txt: cannot be written: No space left on device")


SHORTAGE = "no memory or no thread is left for this command"


@contextmanager
def unclosable(simulated: Simulated) -> Iterator[Lease]:
    with simulated.held_lease() as lease:
        yield lease
        no_thread()


def test_what_fails_after_the_last_request_is_a_note_beside_the_outcomes(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wants_a_create_and_a_delete(simulated)
    monkeypatch.setattr(Access, "lease", lambda *_, **__: unclosable(simulated))

    simulated.apply(run)

    assert [outcome.status for outcome in outcomes_of(run)] == [DONE, DONE]
    assert any(text.startswith(f"after the last request: {SHORTAGE}") for text in notes_of(run))
    assert topic_count(run.home, CLUSTER_ID) == 0


def test_the_same_error_is_raised_where_nothing_was_sent(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    run = wants_a_create_and_a_delete(simulated)
    monkeypatch.setattr(Access, "lease", lambda *_, **__: unclosable(simulated))
    simulated.cluster.while_waiting_for_controller(no_thread)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        simulated.apply(run)

    assert simulated.cluster.requests == []


def in_second_request(simulated: Simulated) -> None:
    simulated.workspace.apply_settings = {"topicsPerRequest": 1}
    simulated.workspace.verify = dict.fromkeys(("leaders", "isr", "metadata", "deletes"), "0s")
    for name in ("a", "b", "c"):
        simulated.workspace.topic(name)
    simulated.cluster.before_next_request(lambda: setattr(simulated.cluster, "create", no_thread))


@pytest.mark.parametrize("verbose", [(), ("--verbose",)], ids=["", "verbose"])
def test_an_error_between_two_requests_ends_with_a_report_outcomes_and_audit_lines(
    simulated: Simulated, verbose: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    in_second_request(simulated)
    caplog.set_level("INFO" if verbose else "WARNING", logger="topicops")

    ended = simulated.workspace.run(*verbose, "apply", "--environment", "local", "--yes", "--format", "json")

    assert ended.status == ExitStatus.PARTLY_DONE, ended.err
    report = json.loads(ended.out)
    assert [(o["topic"], o["status"]) for o in report["outcomes"]] == [
        ("a", "done"),
        ("b", "unknown"),
        ("c", "not sent"),
    ]
    (folder,) = (simulated.workspace.folder / "home/runs/cli").iterdir()
    assert (folder / "outcomes-create.json").exists()
    assert (folder / "checks.json").exists()
    lines = read_audit_log(audit_folder(simulated.workspace.folder / "home"), "local").lines
    assert [(line.topic, line.outcome) for line in lines] == [("a", DONE), ("b", OutcomeStatus.UNKNOWN)]
    assert SHORTAGE in ended.err
    assert "Traceback" not in ended.err
    assert ("Traceback" in caplog.text) is bool(verbose)


def test_an_error_of_verify_is_a_failed_check(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated.workspace.topic("orders")
    monkeypatch.setattr(verifying, "verify_step", no_thread)

    ended = simulated.workspace.run("apply", "--environment", "local", "--yes")

    assert ended.status == ExitStatus.NOT_VERIFIED, ended.err
    assert f"nothing could be verified: {SHORTAGE}" in ended.out


@pytest.mark.parametrize("error", [no_thread, full_disk], ids=["no thread", "a full disk"])
def test_a_report_that_cannot_be_made_does_not_deny_what_was_sent(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, error: Callable[..., None]
) -> None:
    simulated.workspace.topic("orders")
    monkeypatch.setattr(reporting, "report_text", error)

    ended = simulated.workspace.run("apply", "--environment", "local", "--yes")

    assert ended.status == ExitStatus.PARTLY_DONE, ended.err
    assert "requests were sent before" in ended.err


def test_a_report_that_cannot_be_shown_leaves_the_exit_status(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated.workspace.topic("orders")
    monkeypatch.setattr(reporting, "shown_report", no_thread)

    ended = simulated.workspace.run("apply", "--environment", "local", "--yes")

    assert ended.status == ExitStatus.SUCCESS, ended.err
    assert f"topicops: {SHORTAGE}" in ended.err
    assert "the run's report is in home/runs/cli/" in ended.err


def test_the_same_refusal_of_many_changes_is_one_line_of_progress(simulated: Simulated) -> None:
    for name in ("a", "b", "c"):
        simulated.cluster.put_topic(name, (1, 2))
        simulated.workspace.tombstone(name)
    lines: list[str] = []
    run = replace(simulated.planned(), progress=lines.append)
    simulated.cluster.stop_broker(2)

    simulated.apply(run, approved=True)

    (line,) = (line for line in lines if "refused" in line)
    assert line.startswith("delete a: refused (")
    assert line.endswith(", and 2 more for the same reason")
    assert [outcome.topic for outcome in outcomes_of(run)] == ["a", "b", "c"]
