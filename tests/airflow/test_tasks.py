"""What each task does with what it finds: params, answers, other runs. The steps are scripted, the folders are real."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from fakes import builders
from fixtures.answered_run import answer, answered, approval_task, ask, run_of
from fixtures.reviews import KEY, as_param, review_of, signed
from fixtures.scripted_flow import (
    CREATE,
    DELETE,
    OTHER_DELETE,
    ScriptedFlow,
    ScriptedRun,
    ScriptedTask,
    context,
    digest,
    failed_rule,
    quality_rule,
    report_of,
    site,
    tools,
)
from topicops.edges.home.journal import FileJournal
from topicops.edges.home.memories import HELD, MemoryFile
from topicops.features.ask.history.file import read_history
from topicops.flow.runs.memory import ask_to_stop, overtaken_by, read_held
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import (
    CertificateError,
    ClusterUnreachableError,
    LoginRefusedError,
    MovedFilesError,
    SpecError,
    TopicopsError,
    WrongTargetError,
)
from topicops.model.plans.changes import Action
from topicops.model.runs.facts import Facts, UnhealthyPartitions, facts_file
from topicops.model.runs.memories import HeldSet
from topicops.model.runs.results import (
    MOST_DIGESTS,
    REVIEW_KEY,
    Outcome,
    OutcomeStatus,
    QualityResult,
    Quiet,
    RunResult,
)
from topicops.model.specs.environment import Risk
from topicops.on_airflow import plugged
from topicops.on_airflow.dags import operators
from topicops.on_airflow.site import patience
from topicops.on_airflow.tasks import approval, changes, opening, planning
from topicops.on_airflow.tasks.approval import Shown

PATIENCE = patience()


@pytest.fixture
def held_file(tmp_path: Path) -> MemoryFile[HeldSet]:
    return HELD.of(tmp_path, "local")


# --- the pipeline -----------------------------------------------------------------------------------------------------


def test_the_gate_leaves_the_newest_held_set_and_hands_on_its_digest(
    tmp_path: Path, held_file: MemoryFile[HeldSet]
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    facts = planning.gate(site(flow), context(ScriptedTask()))
    held = read_held(tmp_path, "local")
    assert held.addresses == {digest(DELETE): "delete topic.tmp-import"}
    assert held.found_by == "topic_pipeline_local/manual__1"
    assert facts["question"] == held.digest
    assert facts["digests"] == [digest(DELETE)]


def test_the_held_set_keeps_the_user_whose_run_found_it_first(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    planning.gate(site(flow), context(ScriptedTask(dag_run=ScriptedRun(triggering_user_name="carol"))))
    planning.gate(site(flow), context(ScriptedTask(run_id="scheduled__2")))
    assert read_held(tmp_path, "local").author == "carol"
    flow.changes = (OTHER_DELETE,)
    planning.gate(site(flow), context(ScriptedTask(run_id="scheduled__3")))
    assert read_held(tmp_path, "local").author is None


def test_a_gate_that_holds_nothing_replaces_the_set_before_and_asks_nothing(
    tmp_path: Path, held_file: MemoryFile[HeldSet]
) -> None:
    held_file.write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))
    facts = planning.gate(site(ScriptedFlow(tmp_path, changes=(CREATE,))), context(ScriptedTask()))
    assert read_held(tmp_path, "local").addresses == {}
    assert facts["question"] is None


def test_a_run_that_only_looks_leaves_the_held_set_alone(tmp_path: Path, held_file: MemoryFile[HeldSet]) -> None:
    facts = planning.gate(site(ScriptedFlow(tmp_path, changes=(DELETE,))), context(ScriptedTask(), mode="plan"))
    assert not held_file.path.exists()
    assert "question" not in facts


def test_looking_for_drift_leaves_the_held_set_alone_and_a_plan_for_its_tab(
    tmp_path: Path, held_file: MemoryFile[HeldSet]
) -> None:
    task = ScriptedTask(dag_id="topic_drift_local")
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    planning.plan_to_look_at(site(flow), context(task))
    run = flow.open_run(environment="local", topics=Path(), group=task.dag_id, run_id=task.run_id)
    assert [gated.gate.value for gated in run.read_plan().changes] == ["run", "held"]
    assert planning.drift(site(flow), context(task))["changed"] == 1
    assert not held_file.path.exists()


def test_a_narrowed_run_keeps_what_it_has_not_looked_at(tmp_path: Path, held_file: MemoryFile[HeldSet]) -> None:
    held_file.write(
        HeldSet(addresses={digest(OTHER_DELETE): "delete topic.old-clicks", "0" * 64: "delete topic.tmp-gone"})
    )
    flow = ScriptedFlow(tmp_path, changes=(DELETE,))
    planning.gate(site(flow), context(ScriptedTask(), only="tmp-*"))
    assert set(read_held(tmp_path, "local").addresses) == {digest(OTHER_DELETE), digest(DELETE)}


def test_the_held_set_has_the_same_digest_in_any_order() -> None:
    forward, backward = HeldSet(addresses={"a": "1", "b": "2"}), HeldSet(addresses={"b": "2", "a": "1"})
    assert forward.digest == backward.digest
    assert forward.digest != HeldSet(addresses={"a": "1"}).digest


QUIET = Quiet(sentence="Nothing differs.", run="r/1", full_check_at=datetime(2026, 11, 24, tzinfo=UTC), commit="c" * 40)


def test_a_quiet_run_tells_the_pages_that_nothing_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[EnvironmentRun] = []
    monkeypatch.setattr(plugged, "AFTER_READING", (told.append,))
    planning.snapshot(site(ScriptedFlow(tmp_path, quiet=QUIET)), context(ScriptedTask()))
    assert told


def test_a_quiet_run_hands_ci_a_result_and_keeps_older_runs_from_sending(tmp_path: Path) -> None:
    flow, task = ScriptedFlow(tmp_path, quiet=QUIET), ScriptedTask()
    assert planning.snapshot(site(flow), context(task))["quiet"] == "Nothing differs."
    result = msgspec.convert(task.pushed["result"], RunResult)
    assert (result.headline, result.success, result.commit) == ("Nothing differs.", True, "c" * 40)
    assert overtaken_by(tmp_path, "local", datetime(2026, 11, 1, tzinfo=UTC)) == "topic_pipeline_local/manual__1"


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"approved": [digest(DELETE)]}, id="an approval"),
        pytest.param({"reviews": as_param(signed(review_of(DELETE)))}, id="a review"),
        pytest.param({"commit": "c" * 40}, id="a commit"),
        pytest.param({"only": "orders"}, id="some topics"),
    ],
)
def test_a_run_whose_params_ask_for_something_is_never_quiet(tmp_path: Path, params: Mapping[str, object]) -> None:
    flow = ScriptedFlow(tmp_path, quiet=QUIET)
    assert "quiet" not in planning.snapshot(site(flow), context(ScriptedTask(), **params))
    assert flow.modes == [f"apply its params ask for something of their own: {next(iter(params))}"]


def test_a_cleared_run_is_never_quiet(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, quiet=QUIET)
    cleared = ScriptedTask(dag_run=ScriptedRun(clear_number=1))
    assert "quiet" not in planning.snapshot(site(flow), context(cleared))
    assert flow.modes == ["apply it was cleared"]


def test_without_a_short_cut_every_run_is_a_full_one(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, quiet=QUIET, judged="r/1")
    full = replace(site(flow), tools=replace(tools(flow), short_cuts=()))
    assert "quiet" not in planning.snapshot(full, context(ScriptedTask()))
    assert "quality_after" not in planning.gate(full, context(ScriptedTask()))["skip"]


def test_a_report_notes_a_good_run_and_drift_only_one_without_differences(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    changes.report(site(flow), context(ScriptedTask(), mode="plan"))
    assert flow.noted_good == [()]
    planning.drift(site(flow), context(ScriptedTask(dag_id="topic_drift_local")))
    assert flow.noted_good == [(), ("drift",)]


def test_a_report_and_a_look_for_drift_are_in_the_history(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    task, look = ScriptedTask(), ScriptedTask(dag_id="topic_drift_local")
    planning.gate(site(flow), context(task))
    changes.report(site(flow), context(task))
    planning.plan_to_look_at(site(flow), context(look))
    planning.drift(site(flow), context(look))
    lines, _ = read_history(tmp_path, "local")
    assert [line.run for line in lines] == [f"{task.dag_id}/{task.run_id}" for task in (task, look)]


def test_the_report_of_an_approval_is_of_a_part_and_notes_no_good_run(flow: ScriptedFlow) -> None:
    changes.report(site(flow), {**context(ScriptedTask()), "params": {}})
    assert flow.noted_good == []


def test_mode_plan_sends_nothing(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    with pytest.raises(AirflowSkipException, match="mode is plan"):
        changes.pipeline_change("delete", site(flow), context(ScriptedTask(), mode="plan"))
    assert flow.sent == []


def test_a_change_task_sends_its_own_kind_with_the_digests_of_the_params(tmp_path: Path) -> None:
    flow, params = ScriptedFlow(tmp_path, changes=(DELETE,)), context(ScriptedTask(), approved=[digest(DELETE)])
    planning.gate(site(flow), params)
    changes.pipeline_change("delete", site(flow), params)
    assert flow.sent == [("delete", frozenset({digest(DELETE)}))]


@pytest.mark.parametrize(
    ("user", "signature"),
    [
        pytest.param("carol", "carol (by parameter)", id="a user"),
        pytest.param(None, "unknown (by parameter)", id="nobody known"),
    ],
)
def test_an_approval_by_parameter_names_who_triggered_the_run(tmp_path: Path, user: str | None, signature: str) -> None:
    flow = ScriptedFlow(tmp_path, changes=(DELETE,))
    task = ScriptedTask(dag_run=ScriptedRun(triggering_user_name=user))
    planning.gate(site(flow), context(task, approved=[digest(DELETE)]))
    changes.pipeline_change("delete", site(flow), context(task, approved=[digest(DELETE)]))
    (given,) = flow.approvals
    assert (given.way, given.approver) == ("parameter", user)
    assert given.signature == signature
    assert given.given_at == task.dag_run.run_after


@pytest.fixture
def review_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key, in a folder of which git knows nothing."""
    monkeypatch.setenv(REVIEW_KEY, KEY)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("review_key")
def test_a_change_task_takes_the_signed_reviews_of_the_params_beside_the_digests(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE, OTHER_DELETE))
    reviews = as_param(signed(review_of(DELETE)), signed(review_of(OTHER_DELETE, reviewer="ann")))
    task = ScriptedTask(dag_run=ScriptedRun(triggering_user_name="carol"))
    params = {"approved": [digest(CREATE)], "reviews": reviews}
    planning.gate(site(flow), context(task, **params))
    changes.pipeline_change("delete", site(flow), context(task, **params))
    assert [(given.way, given.approver, set(given.digests)) for given in flow.approvals] == [
        ("parameter", "carol", {digest(CREATE)}),
        ("review", "alice", {digest(DELETE)}),
        ("review", "ann", {digest(OTHER_DELETE)}),
    ]


@pytest.mark.parametrize(
    ("digits", "is_this_plan", "held", "note"),
    [
        pytest.param(8, True, [], "", id="8 digits"),
        pytest.param(64, True, [], "", id="all digits"),
        pytest.param(7, True, [digest(DELETE)], "is too short: type 8 digits or more", id="too few digits"),
        pytest.param(8, False, [digest(DELETE)], "is not how this plan's fingerprint", id="another plan"),
    ],
)
def test_the_param_approved_takes_the_first_digits_of_this_plans_fingerprint(
    tmp_path: Path, *, digits: int, is_this_plan: bool, held: list[str], note: str
) -> None:
    flow, task = ScriptedFlow(tmp_path, changes=(CREATE, DELETE)), ScriptedTask()
    of = flow if is_this_plan else ScriptedFlow(tmp_path / "other", changes=(CREATE,))
    key = str(planning.gate(site(of), context(ScriptedTask()))["fingerprint"])[:digits]
    params = {"approved": [key]}
    assert planning.gate(site(flow), context(task, **params))["digests"] == held
    changes.report(site(flow), context(task, **params))
    assert [note in text for text in task.pushed["result"]["notes"] if "approved: " in text] == [True] * bool(note)  # type: ignore[index]


@pytest.mark.usefixtures("review_key")
def test_a_gate_lets_run_what_a_signed_review_approves(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE, OTHER_DELETE))
    facts = planning.gate(site(flow), context(ScriptedTask(), reviews=as_param(signed(review_of(DELETE)))))
    assert facts["digests"] == [digest(OTHER_DELETE)]


@pytest.mark.usefixtures("review_key")
def test_a_forged_review_leaves_its_change_held_and_log_and_report_say_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    task = ScriptedTask()
    reviews = as_param(signed(review_of(DELETE), "a key that Airflow does not know at all"))
    facts = planning.gate(site(flow), context(task, reviews=reviews))
    assert facts["digests"] == [digest(DELETE)]
    changes.report(site(flow), context(task, reviews=reviews))
    (sentence,) = task.pushed["result"]["notes"]  # type: ignore[index]
    assert "its signature was not made with the TOPICOPS_REVIEW_KEY of this Airflow" in sentence
    assert sentence in caplog.messages
    changes.pipeline_change("delete", site(flow), context(task, reviews=reviews))
    assert flow.approvals == ()


@pytest.mark.parametrize(
    ("outcomes", "retried"),
    [
        pytest.param({"done": 2, "failed": 1}, True, id="a failed change is tried again"),
        pytest.param({"unknown": 1}, True, id="an unknown outcome is looked at again"),
        pytest.param({"refused": 1}, False, id="a refused change needs a new plan"),
        pytest.param({"not sent": 3}, True, id="what was not sent is sent by the retry"),
    ],
)
def test_a_change_task_fails_when_a_change_did_not_end_as_planned(
    tmp_path: Path, outcomes: Mapping[str, object], retried: bool
) -> None:
    flow = ScriptedFlow(tmp_path, outcomes=outcomes)
    with pytest.raises(AirflowException) as caught:
        changes.pipeline_change("create", site(flow), context(ScriptedTask()))
    assert isinstance(caught.value, AirflowFailException) is not retried


def test_a_task_whose_topics_move_ends_well_and_returns_how_many(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, outcomes={"moving": 2, "done": 0, "failed": 0})

    returned = changes.pipeline_change("reassign", site(flow), context(ScriptedTask()))

    assert returned == {"moving": 2, "done": 0, "failed": 0}
    assert flow.sent == [("reassign", frozenset())]


def test_the_log_of_a_change_task_ends_with_the_outcome_of_each_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    with caplog.at_level(logging.INFO, logger="topicops"):
        changes.pipeline_change("create", site(flow), context(ScriptedTask()))
    assert caplog.messages[-1].splitlines()[1:] == [
        "| topic | action | outcome | why |",
        "|---|---|---|---|",
        "| orders | create | done |  |",
    ]


def test_a_change_task_with_nothing_to_do_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="topicops"):
        changes.pipeline_change("expand", site(ScriptedFlow(tmp_path, changes=(CREATE,))), context(ScriptedTask()))
    assert caplog.messages[-1] == "nothing to expand"


def test_what_a_step_logs_of_a_change_is_not_told_beside_the_progress(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps_logger = logging.getLogger("topicops.steps.applying.ledger")

    class Telling(ScriptedFlow):
        def apply(self, run: EnvironmentRun, **asked: object) -> Mapping[str, int]:
            steps_logger.info("created topic=orders partitions=3")
            steps_logger.warning("the controller moved")
            return {"done": 1}

    with caplog.at_level(logging.INFO, logger="topicops"):
        changes.pipeline_change("create", site(Telling(tmp_path)), context(ScriptedTask()))
        steps_logger.info("heard again")
    assert caplog.messages == ["the controller moved", "nothing to create", "heard again"]


def test_tasks_that_overlap_leave_the_log_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    steps_logger = logging.getLogger("topicops.steps.applying.ledger")
    first, second = changes.logged_once(), changes.logged_once()

    with caplog.at_level(logging.INFO, logger="topicops"):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        steps_logger.info("told as progress")
        second.__exit__(None, None, None)
        steps_logger.info("heard again")

    assert caplog.messages == ["heard again"]


def test_the_log_of_verify_ends_with_the_verdict_on_each_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="topicops"):
        flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
        planning.gate(site(flow), context(ScriptedTask()))
        changes.pipeline_change("create", site(flow), context(ScriptedTask()))
        changes.verify(site(flow), context(ScriptedTask()))
    (table,) = [message for message in caplog.messages if "| verdict |" in message]
    assert table.splitlines()[1:] == [
        "| topic | verdict | what is wrong |",
        "|---|---|---|",
        "| orders | healthy |  |",
        "| tmp-import | healthy |  |",
    ]


@pytest.mark.parametrize("step", [changes.verify, changes.quality_after])
def test_after_a_failure_what_was_sent_is_looked_at_and_nothing_else(
    tmp_path: Path, step: Callable[[object, object], object]
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    failed = ScriptedTask(states={"create": "failed"})
    planning.validate(site(flow), context(failed))
    planning.gate(site(flow), context(failed))
    with pytest.raises(AirflowSkipException, match="nothing was sent"):
        step(site(flow), context(failed))
    changes.pipeline_change("create", site(flow), context(failed))
    step(site(flow), context(failed))


def test_a_task_that_ended_in_the_middle_has_sent_what_its_journal_says(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, OTHER_DELETE))
    planning.gate(site(flow), context(ScriptedTask()))
    run = run_of(flow, ScriptedTask())
    journal = FileJournal(run.store.path("journal-create-1.jsonl"))
    journal.intend([gated for gated in run.read_plan().changes if gated.change.topic == "orders"])
    (lost,) = outcomes_so_far(run)
    assert (lost.topic, lost.status, lost.sent) == ("orders", OutcomeStatus.UNKNOWN, True)
    changes.verify(site(flow), context(ScriptedTask(states={"create": "failed"})))
    journal.record([replace(lost, status=OutcomeStatus.DONE, message="")])
    assert [outcome.status for outcome in outcomes_so_far(run)] == [OutcomeStatus.DONE]


@pytest.mark.parametrize(
    ("task", "stopped"),
    [
        pytest.param(ScriptedTask(task_id="create"), False, id="it runs"),
        pytest.param(ScriptedTask(task_id="create", runs={"manual__1": "failed"}), True, id="the run was marked"),
        pytest.param(ScriptedTask(task_id="create", states={"create": "failed"}), True, id="the task was marked"),
    ],
)
def test_a_run_that_a_person_marked_sends_nothing_more(tmp_path: Path, task: ScriptedTask, *, stopped: bool) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    planning.gate(site(flow), context(task))
    changes.pipeline_change("create", site(flow), context(task))
    assert flow.was_stopped is stopped


def test_a_stop_is_for_runs_that_have_begun_and_for_no_later_one(tmp_path: Path) -> None:
    flow, first, second = ScriptedFlow(tmp_path, changes=(CREATE,)), ScriptedTask(), ScriptedTask(run_id="manual__2")
    planning.validate(site(flow), context(first))
    ask_to_stop(tmp_path, "local", by="carol")
    planning.validate(site(flow), context(second))
    stopped = []
    for task in (first, second):
        planning.gate(site(flow), context(task))
        changes.pipeline_change("create", site(flow), context(task))
        stopped.append(flow.was_stopped)
    assert stopped == [True, False]
    (tmp_path / "stops" / "local.json").write_text("no json", encoding="utf-8")
    changes.pipeline_change("create", site(flow), context(second))
    assert flow.was_stopped, "a stop that nobody can read must count as one"


@pytest.mark.parametrize("fail_on", [frozenset(), frozenset({"unhealthy"})])
def test_a_cluster_that_is_not_healthy_fails_the_run_only_where_the_file_says_so(
    tmp_path: Path, fail_on: frozenset[str]
) -> None:
    flow = ScriptedFlow(tmp_path)
    of_environment = replace(site(flow), options=replace(site(flow).options, fail_on=fail_on))
    dead = UnhealthyPartitions(broker=2, rack=None, rule="Q12", partitions=398)
    run = run_of(flow, ScriptedTask())
    run.store.write_value(facts_file("before"), Facts(load=(), unhealthy=(dead,), has_states=True))
    if not fail_on:
        changes.report(of_environment, context(ScriptedTask()))
        return
    with pytest.raises(AirflowFailException, match=r"airflow\.failOn: The cluster is not healthy: broker 2"):
        changes.report(of_environment, context(ScriptedTask()))


def test_each_report_tells_the_pages_what_came_of_the_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[EnvironmentRun] = []
    monkeypatch.setattr(plugged, "AFTER_READING", (told.append,))
    flow = ScriptedFlow(tmp_path, report_summary=report_of(ok=False))
    with pytest.raises(AirflowFailException):
        changes.report(site(flow), context(ScriptedTask(states={"create": "failed"})))
    assert told


@dataclass
class Triggered(ScriptedRun):
    conf: Mapping[str, object] = field(default_factory=dict)


@dataclass
class OfParams:
    params: Mapping[str, object]


def test_a_name_that_is_no_param_fails_the_run_before_anything_is_read(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    given = context(ScriptedTask(dag_run=Triggered(conf={"mode": "plan", "Only": "stage.nothing"})))
    given["dag"] = OfParams({"mode": "", "only": "", "commit": ""})
    with pytest.raises(AirflowFailException, match=r"Only is no param of this DAG: did you mean only\?"):
        planning.validate(site(flow), given)
    assert not flow.validated


@pytest.mark.parametrize("step", [planning.plan, planning.plan_to_look_at])
def test_a_pattern_that_matches_no_topic_is_no_good_news(
    tmp_path: Path, step: Callable[[object, object], object]
) -> None:
    flow, live = ScriptedFlow(tmp_path, changes=(CREATE,)), builders.snapshot(builders.live_topic("payments.ledger"))
    run = run_of(flow, ScriptedTask())
    run.store.write_value("live.json", live)
    run.store.write_value("desired.json", builders.desired_of(builders.desired_topic("payments.new")))
    with pytest.raises(AirflowFailException, match=r"only: 0 of 2 topics match paymnts\.\*"):
        step(site(flow), context(ScriptedTask(), only="paymnts.*"))
    step(site(flow), context(ScriptedTask(), only="payments.l*"))


def test_a_run_in_mode_plan_judges_leaders_and_replicas_too_unless_they_were_judged_in_this_state(
    tmp_path: Path,
) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    assert "quality_after" not in planning.gate(site(flow), context(ScriptedTask(), mode="plan"))["skip"]
    flow.judged = "topic_pipeline_local/before"
    skipped = planning.gate(site(flow), context(ScriptedTask(), mode="plan"))["skip"]
    assert "the rules held in this very state" in skipped["quality_after"]


@pytest.mark.parametrize("given", [[], None])
def test_a_form_that_names_no_change_asks_about_all_that_are_held(tmp_path: Path, given: list[str] | None) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    planning.gate(site(flow), context(ScriptedTask()))
    assert approval.load(site(flow), context(approval_task(), digests=given))["digests"] == [digest(DELETE)]


def test_an_empty_mode_is_plan(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    planning.gate(site(flow), context(ScriptedTask(), mode=None))
    with pytest.raises(AirflowSkipException, match="mode is plan"):
        changes.pipeline_change("create", site(flow), context(ScriptedTask(), mode=None))


def test_the_audit_log_is_told_who_started_the_run(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    for name, said in (("carol", "carol"), (None, "schedule")):
        task = ScriptedTask(dag_run=ScriptedRun(triggering_user_name=name))
        planning.gate(site(flow), context(task))
        changes.pipeline_change("create", site(flow), context(task))
        assert flow.started_by == said


@pytest.mark.parametrize(
    ("problem", "retried"),
    [
        pytest.param(ClusterUnreachableError("zk1:2181: no answer"), True, id="an unreachable cluster"),
        pytest.param(WrongTargetError("another cluster"), False, id="the wrong cluster"),
        pytest.param(LoginRefusedError("zk1:2181: the login was refused"), False, id="a refused login"),
        pytest.param(CertificateError("zk1:2182: not trusted"), False, id="a certificate that is not trusted"),
        pytest.param(MovedFilesError("the files moved"), False, id="files of another commit than the run's"),
    ],
)
def test_only_errors_that_may_pass_are_retried(tmp_path: Path, problem: TopicopsError, retried: bool) -> None:
    with pytest.raises(AirflowException, match=str(problem)) as caught:
        planning.validate(site(ScriptedFlow(tmp_path, problem=problem)), context(ScriptedTask()))
    assert isinstance(caught.value, AirflowFailException) is not retried


COMMIT, OTHER = "a" * 40, "b" * 40


@pytest.mark.parametrize(("text", "seconds"), [("", 600.0), ("30s", 30.0)])
def test_a_pinned_run_hands_its_commit_on_and_waits_for_it_as_long_as_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, seconds: float
) -> None:
    monkeypatch.setenv("TOPICOPS_COMMIT_WITHIN", text)
    flow = ScriptedFlow(tmp_path)
    planning.validate(site(flow), context(ScriptedTask(), commit=COMMIT))
    assert flow.validated == [(None, COMMIT, seconds)]


@dataclass
class Bundle:
    """What a versioned bundle of Airflow's shows of itself."""

    path: Path
    version: str | None = OTHER


@pytest.mark.parametrize(
    ("topics", "version"),
    [pytest.param("clone/topics", OTHER, id="in the bundle"), pytest.param("elsewhere/topics", None, id="beside it")],
)
def test_a_bundle_names_the_commit_of_the_topics_only_if_it_holds_them(
    tmp_path: Path, topics: str, version: str | None
) -> None:
    class GitBundle(Bundle):
        repo_path = tmp_path / "clone"

    bundle = GitBundle(path=tmp_path / "clone/dags")
    assert opening.bundle_version(ScriptedTask(bundle_instance=bundle), tmp_path / topics) == version


def test_a_bundle_that_is_one_folder_holds_what_lies_in_it(tmp_path: Path) -> None:
    task = ScriptedTask(bundle_instance=Bundle(path=tmp_path))
    assert opening.bundle_version(task, tmp_path / "topics") == OTHER
    assert opening.bundle_version(ScriptedTask(), tmp_path / "topics") is None


@dataclass
class ForgeBundle(Bundle):
    shown_at: str = "https://git.example.org/topics/tree"

    def view_url(self, version: str) -> str:
        return f"{self.shown_at}/{version}"


@pytest.mark.parametrize(
    ("bundle", "address"),
    [
        pytest.param(ForgeBundle, f"https://git.example.org/topics/tree/{OTHER}", id="the forge is known"),
        pytest.param(Bundle, "", id="a bundle without pages"),
        pytest.param(partial(ForgeBundle, shown_at="file:///srv/topics"), "", id="no address for a browser"),
    ],
)
def test_the_page_of_a_run_is_told_where_the_forge_shows_its_commit(
    tmp_path: Path, bundle: Callable[..., Bundle], address: str
) -> None:
    task = ScriptedTask(bundle_instance=bundle(path=tmp_path))
    assert opening.keep_commit_address(run_of(ScriptedFlow(tmp_path), task), task, tmp_path / "topics") == address
    assert (run_of(ScriptedFlow(tmp_path), task).store.has("commit-address.txt")) == bool(address)


def test_the_log_of_each_task_names_files_as_their_repository_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = tmp_path / "versions" / "topics"
    found = builders.diagnostic(file=f"{os.path.relpath(topics)}/a.yaml")
    flow = ScriptedFlow(tmp_path, problem=SpecError((found,)))
    with pytest.raises(AirflowFailException):
        planning.validate(replace(site(flow), topics=topics), context(ScriptedTask()))
    assert "topics/a.yaml:3: TOP101 no owner" in [record.getMessage() for record in caplog.records]


def test_a_critical_rule_that_fails_fails_its_task_and_its_table_is_still_handed_on(tmp_path: Path) -> None:
    task, flow = ScriptedTask(), ScriptedFlow(tmp_path, rules_after=(quality_rule("critical", success=False),))
    planning.validate(site(flow), context(task))
    with pytest.raises(AirflowFailException, match="Q04"):
        changes.quality_after(site(flow), context(task))
    assert "orders" in str(task.pushed["quality"])


@pytest.mark.parametrize("result", [failed_rule("warning"), quality_rule("critical", success=True)])
def test_warnings_and_passed_rules_fail_nothing(tmp_path: Path, result: QualityResult) -> None:
    task, flow = ScriptedTask(), ScriptedFlow(tmp_path, rules_before=(result,))
    planning.validate(site(flow), context(task))
    planning.quality_before(site(flow), context(task))
    assert "Q04" in str(task.pushed["quality"])


def test_the_rules_and_the_comparison_have_the_engine_once_and_the_task_diff_does_not_start_it(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    planning.validate(site(flow), context(ScriptedTask()))

    planning.quality_before(site(flow), context(ScriptedTask()))
    planning.diff(site(flow), context(ScriptedTask()))

    assert flow.in_engine == ["begin", "quality", "diff", "end"]


def test_nothing_is_compared_after_a_critical_rule_has_failed(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, rules_before=(failed_rule("critical"),))
    planning.validate(site(flow), context(ScriptedTask()))

    with pytest.raises(AirflowFailException, match="Q04"):
        planning.quality_before(site(flow), context(ScriptedTask()))

    assert "diff" not in flow.in_engine


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_good_run_with_held_changes_ends_well(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, report_summary=report_of(ok=True, held=2, skipped=1))
    task = ScriptedTask(states={"create": "success", "ask": "skipped", "report": "running"})
    assert changes.report(site(flow), context(task))["held"] == 2


def test_any_failed_task_fails_the_run_and_is_named(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    states = {"create": "failed", "delete": "upstream_failed", "verify": "upstream_failed", "expand": "success"}
    with pytest.raises(AirflowFailException, match="create failed"):
        changes.report(site(flow), context(ScriptedTask(states=states)))
    assert flow.failed_tasks == ["create"]


def test_a_check_that_failed_fails_the_run_although_every_task_was_green(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, report_summary=report_of(ok=False, summary="1 topic unhealthy"))
    with pytest.raises(AirflowFailException, match="1 topic unhealthy"):
        changes.report(site(flow), context(ScriptedTask(states={"verify": "success"})))


def test_the_result_of_a_run_is_plain_json_for_ci_also_when_the_run_fails(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE, DELETE))
    task = ScriptedTask(states={"verify": "failed"})
    planning.gate(site(flow), context(task))
    changes.pipeline_change("create", site(flow), context(task))
    with pytest.raises(AirflowFailException, match="verify failed"):
        changes.report(site(flow), context(task))
    result = msgspec.convert(task.pushed["result"], RunResult)
    assert json.loads(json.dumps(task.pushed["result"])) == task.pushed["result"]
    assert (result.success, result.headline) == (
        False,
        "Applied, and the run did not end as it should: 1 done; 1 held.",
    )
    assert [(change.topic, change.status) for change in result.changes] == [("tmp-import", "held"), ("orders", "done")]
    assert result.notes == ("Task verify failed; its log says why, or the API server's.",)


def test_a_pipeline_that_applied_may_be_remembered_as_verified_and_one_that_planned_may_not(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path)
    changes.report(site(flow), context(ScriptedTask(), mode="plan"))
    assert flow.noted_verified == []
    changes.report(site(flow), context(ScriptedTask()))
    assert flow.noted_verified == [()]


# --- asking -----------------------------------------------------------------------------------------------------------

SET = "3-changes-73c682d1aa21"
HELD_SET = {"question": "73c682d1aa21" + "0" * 52, "asked": 3, "digests": ["d"], "held_set": ""}
Runs = dict[str, str]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param({}, f"{SET}.1", id="a new set"),
        pytest.param({f"{SET}.1": "failed"}, f"{SET}.2", id="the last run failed or timed out"),
        pytest.param({f"{SET}.1": "success"}, f"{SET}.2", id="approved, and due once more"),
        pytest.param({f"{SET}.1": "failed", f"{SET}.2": "failed"}, f"{SET}.3", id="failed twice"),
    ],
)
def test_a_set_is_asked_about_in_a_run_of_its_own(runs: Runs, expected: str) -> None:
    task = ScriptedTask(runs=runs, xcoms={"gate": HELD_SET})
    run_id, params, note = approval.to_ask(context(task), "topic_approval_local")
    assert (run_id, params) == (expected, {"digests": ["d"], "held_set": ""})
    assert note == "3 held changes, found by topic_pipeline_local, run manual__1"


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param({f"{SET}.1": "running"}, id="the question is open"),
        pytest.param({f"{SET}.1": "queued"}, id="the question is about to be asked"),
    ],
)
def test_one_set_is_not_asked_about_twice(runs: Runs) -> None:
    task = ScriptedTask(runs=runs, xcoms={"gate": HELD_SET})
    with pytest.raises(AirflowSkipException, match="is being asked about"):
        approval.to_ask(context(task), "topic_approval_local")


# --- answering --------------------------------------------------------------------------------------------------------


@pytest.fixture
def delete_is_held(held_file: MemoryFile[HeldSet]) -> None:
    held_file.write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))


@pytest.fixture
def flow(tmp_path: Path, delete_is_held: None) -> ScriptedFlow:
    return ScriptedFlow(tmp_path, changes=(CREATE, DELETE, OTHER_DELETE))


def test_an_approval_sends_exactly_what_was_asked(flow: ScriptedFlow) -> None:
    approval.approved_change("delete", site(flow), context(answered(flow, "Approve")))
    assert flow.sent == [("delete", frozenset({digest(DELETE)}))]
    (given,) = flow.approvals
    assert (given.way, given.approver) == ("question", "admin")
    assert given.signature == "admin (id 1)"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="nobody has answered"),
        pytest.param(("Reject",), id="a rejection"),
        pytest.param(("Approve", "Reject"), id="both"),
        pytest.param(("Yes",), id="another word"),
    ],
)
@pytest.mark.parametrize("action", ["create", "expand", "configure", "reassign", "delete"])
def test_nothing_but_a_recorded_approve_sends_anything(
    flow: ScriptedFlow, options: tuple[str, ...], action: Action
) -> None:
    with pytest.raises(AirflowSkipException, match="nothing is sent"):
        approval.approved_change(action, site(flow), context(answered(flow, *options)))
    assert flow.sent == []


def test_an_answer_that_stands_in_xcom_alone_sends_nothing(flow: ScriptedFlow) -> None:
    task = answered(flow)
    task.xcoms = {
        "load": {"digests": [digest(DELETE)]},
        "approve": {"chosen_options": ["Approve"], "responded_by_user": {"id": "1", "name": "the-cto"}},
    }
    with pytest.raises(AirflowSkipException, match="no recorded answer"):
        approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == []


def test_the_answer_to_an_earlier_try_of_a_cleared_run_sends_nothing(flow: ScriptedFlow) -> None:
    task = answered(flow, "Approve")
    task.states["approve"] = "skipped"
    with pytest.raises(AirflowSkipException, match="the question has no answer"):
        approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == []
    assert approval.report(site(flow), context(task))["answer"] == "none"


def test_an_answer_does_not_outlive_a_load_that_was_cleared_after_it(flow: ScriptedFlow) -> None:
    task = answered(flow, "Approve")
    approval.load(site(flow), context(task, digests=[digest(DELETE)]))
    with pytest.raises(AirflowSkipException, match="the question was made anew after its answer"):
        approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == []


def test_a_load_that_fails_withdraws_the_question(flow: ScriptedFlow) -> None:
    task = answered(flow, "Approve")
    flow.problem = ClusterUnreachableError("zk1:2181: no answer")
    with pytest.raises(AirflowException):
        approval.load(site(flow), context(task, digests=[digest(DELETE)]))
    flow.problem = None
    with pytest.raises(AirflowSkipException, match="no recorded answer"):
        approval.approved_change("delete", site(flow), context(task))


def test_a_run_asks_about_the_set_of_its_first_try_whatever_is_held_by_now(
    flow: ScriptedFlow, held_file: MemoryFile[HeldSet]
) -> None:
    task = approval_task()
    first = approval.load(site(flow), context(task))
    held_file.write(HeldSet(addresses={digest(OTHER_DELETE): "delete topic.old-clicks"}))
    second = approval.load(site(flow), context(task))
    assert first["digests"] == second["digests"] == [digest(DELETE)]


def test_a_set_too_large_for_xcom_is_named_by_its_digest_and_asked_about_only_while_it_is_held(
    flow: ScriptedFlow, held_file: MemoryFile[HeldSet]
) -> None:
    many = HeldSet(addresses={f"{n:064x}": f"delete topic.t{n}" for n in range(MOST_DIGESTS + 1)})
    asked = planning.asked_about(many, many)
    assert (asked["digests"], asked["held_set"], asked["asked"]) == ([], many.digest, MOST_DIGESTS + 1)
    held_file.write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}))
    with pytest.raises(AirflowSkipException, match="due no more"):
        approval.load(site(flow), context(approval_task(), held_set=many.digest))


def test_a_set_that_is_named_by_its_digest_is_asked_about(flow: ScriptedFlow, held_file: MemoryFile[HeldSet]) -> None:
    held = HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"})
    held_file.write(held)
    facts = approval.load(site(flow), context(approval_task(), held_set=held.digest))
    assert facts["digests"] == [digest(DELETE)]


def test_a_new_run_of_an_old_name_asks_its_own_question(flow: ScriptedFlow) -> None:
    earlier = answered(flow, "Approve")
    later = approval_task()
    later.dag_run = ScriptedRun(run_after=datetime.now(UTC))
    with pytest.raises(AirflowSkipException, match="no recorded answer"):
        approval.approved_change("delete", site(flow), context(later))
    facts = approval.load(site(flow), context(later, digests=[digest(OTHER_DELETE)]))
    assert earlier.run_id == later.run_id
    assert facts["digests"] == [digest(OTHER_DELETE)]


def test_an_approval_names_as_authors_who_found_the_changes_and_who_started_the_question(
    flow: ScriptedFlow, held_file: MemoryFile[HeldSet]
) -> None:
    held_file.write(HeldSet(addresses={digest(DELETE): "delete topic.tmp-import"}, author="carol"))
    task = approval_task()
    task.dag_run = ScriptedRun(triggering_user_name="dave")
    ask(flow, task)
    answer(flow, task, "Approve")
    approval.approved_change("delete", site(flow), context(task))
    (given,) = flow.approvals
    assert given.authors == {"carol", "dave"}


def test_an_approved_set_that_was_replaced_sends_nothing_and_says_by_what(
    flow: ScriptedFlow, held_file: MemoryFile[HeldSet]
) -> None:
    task = answered(flow, "Approve")
    held_file.write(HeldSet(addresses={digest(OTHER_DELETE): "delete topic.old-clicks"}, found_by="p/run-2"))
    with pytest.raises(AirflowSkipException, match="nothing is sent"):
        approval.approved_change("delete", site(flow), context(task))
    replaced = "the set was replaced by that of p/run-2, which holds delete old-clicks"
    with pytest.raises(AirflowSkipException, match=f"Approved, and nothing was sent: {replaced}"):
        approval.report(site(flow), context(task))
    assert flow.sent == []
    (outcome,) = run_of(flow, task).store.read_value("outcomes-delete.json", tuple[Outcome, ...])
    assert (outcome.status, outcome.digest) == (OutcomeStatus.REFUSED, digest(DELETE))
    assert outcome.message == replaced
    facts = {"answer": "approved", "replaced": replaced, "comment": "", "rejected": 0}
    assert task.pushed["return_value"] == facts
    assert msgspec.convert(task.pushed["result"], RunResult).headline == f"Approved, and nothing was sent: {replaced}."


@pytest.mark.parametrize(
    ("deleted", "problem"),
    [
        pytest.param("success", None, id="a newer gate came after the last change was sent"),
        pytest.param("skipped", "not sent: delete", id="a newer gate came between two kinds of changes"),
    ],
)
def test_what_was_sent_is_judged_although_a_newer_set_stands_by_now(
    flow: ScriptedFlow, held_file: MemoryFile[HeldSet], deleted: str, problem: str | None
) -> None:
    task = answered(flow, "Approve")
    held_file.write(HeldSet())
    task.states |= {"create": "success", "delete": deleted, "verify": "success"}
    if problem is None:
        assert approval.report(site(flow), context(task))["ok"]
    else:
        with pytest.raises(AirflowFailException, match=problem):
            approval.report(site(flow), context(task))
    assert flow.failed_tasks == []


def test_a_set_that_only_grew_may_still_be_approved_in_part(flow: ScriptedFlow, held_file: MemoryFile[HeldSet]) -> None:
    task = answered(flow, "Approve")
    both = {digest(DELETE): "delete topic.tmp-import", digest(OTHER_DELETE): "delete topic.old-clicks"}
    held_file.write(HeldSet(addresses=both))
    approval.approved_change("delete", site(flow), context(task))
    assert flow.sent == [("delete", frozenset({digest(DELETE)}))]


def test_a_rejection_is_reported_as_one_and_the_run_ends_well(flow: ScriptedFlow) -> None:
    task = answered(flow, "Reject")
    assert approval.report(site(flow), context(task))["answer"] == "rejected"
    result = msgspec.convert(task.pushed["result"], RunResult)
    assert (result.headline, result.success) == ("Rejected: nothing was sent.", True)
    assert [(change.topic, change.status) for change in result.changes] == [("tmp-import", "held")]


def test_a_task_that_was_marked_as_successful_is_no_answer(flow: ScriptedFlow) -> None:
    assert approval.report(site(flow), context(answered(flow)))["answer"] == "none"


class ShowsAnEarlierQuestion(operators.AskPerson):
    """Airflow keeps the text of a task's first question when the task is cleared."""

    def _shown(self, context: Context) -> Shown:
        subject = "Send to local? 2 held changes, question 0123456789ab"
        return Shown(subject=subject, body="the text of then", params={})


class ShowsAnEarlierForm(operators.AskPerson):
    def _shown(self, context: Context) -> Shown:
        params = {**self.serialized_params, "delete old-clicks": {}}
        return Shown(subject=self.subject, body=self.body, params=params)


@pytest.mark.parametrize("shows", [ShowsAnEarlierQuestion, ShowsAnEarlierForm])
def test_nobody_is_asked_by_an_earlier_text_or_form(flow: ScriptedFlow, shows: type[operators.AskPerson]) -> None:
    task = answered(flow, "Approve")
    ask_again = shows(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    with pytest.raises(AirflowFailException, match="still shows an earlier question of this run"):
        ask_again.execute(context(task))
    with pytest.raises(AirflowSkipException, match="no recorded answer"):
        approval.approved_change("delete", site(flow), context(task))


def test_without_a_question_nobody_is_asked(flow: ScriptedFlow) -> None:
    task = approval_task()
    unasked = operators.AskPerson(task_id="approve", site=site(flow), subject="Send to local?", patience=PATIENCE)
    with pytest.raises(AirflowFailException, match="load has left no question"):
        unasked.execute(context(task))


def test_a_question_that_timed_out_fails_the_run(flow: ScriptedFlow) -> None:
    task = answered(flow)
    task.states = {"approve": "failed", "create": "upstream_failed"}
    with pytest.raises(AirflowFailException, match="approve failed"):
        approval.report(site(flow), context(task))


def test_the_question_is_about_the_changes_in_it_alone_and_names_itself(flow: ScriptedFlow) -> None:
    task = approval_task()
    facts = approval.load(site(flow), context(task, digests=[digest(DELETE)]))
    text = Path(str(facts["question"])).read_text(encoding="utf-8")
    assert "tmp-import" in text
    assert digest(DELETE)[:8] in text
    assert str(facts["question_digest"]) in text
    assert "orders" not in text
    assert "old-clicks" not in text
    plan = run_of(flow, task).read_plan()
    assert [gated.digest for gated in plan.changes] == [digest(DELETE)]


def test_nobody_is_asked_about_a_set_that_is_due_no_more(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    with pytest.raises(AirflowSkipException, match="1 of 1 change are due no more"):
        approval.load(site(flow), context(ScriptedTask(), digests=[digest(DELETE)]))


def test_a_question_cannot_carry_markup_of_a_spec(tmp_path: Path) -> None:
    value = "<script>alert(1)</script> | [x](y)"
    hostile = builders.configure_change("orders", after={"compression.type": value}, risk=Risk.RISKY)
    flow = ScriptedFlow(tmp_path, changes=(hostile,))
    facts = approval.load(site(flow), context(ScriptedTask(), digests=[digest(hostile)]))
    question = Path(str(facts["question"])).read_text(encoding="utf-8")
    assert "<script>" not in question
    assert "[x](y)" not in question


def test_a_part_of_too_many_deletes_is_not_asked_about(tmp_path: Path) -> None:
    names = [f"tmp-{n:02}" for n in range(51)]
    flow = ScriptedFlow(tmp_path, changes=tuple(builders.delete_change(name) for name in names))
    task = ScriptedTask(dag_id="topic_approval_local")
    with pytest.raises(AirflowSkipException, match="wait for no approval"):
        approval.load(site(flow), context(task, digests=[digest(flow.changes[0])]))
