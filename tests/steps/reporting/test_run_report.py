"""A report says what was done, what was not, and what a person does next."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fakes.changes import plan_of, plan_to_create
from topicops.model.codes import Code
from topicops.model.json_types import json_text
from topicops.model.plans.changes import GateWord
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, QualityResult, Verdict
from topicops.steps.reporting.facts_wording import MOST
from topicops.steps.reporting.run_report import (
    EXAMPLES,
    RunReport,
    carried_out,
    headline,
    next_steps,
    outcome_table,
    reasons_of,
    report_json,
    report_markdown,
    report_text,
    verdict_table,
)

DONE, REFUSED, UNKNOWN = OutcomeStatus.DONE, OutcomeStatus.REFUSED, OutcomeStatus.UNKNOWN


def outcome(topic: str, status: OutcomeStatus, message: str = "") -> Outcome:
    return Outcome(topic=topic, action="create", digest=topic, status=status, message=message, sent=status is DONE)


def check(topic: str, verdict: Verdict, message: str = "") -> Check:
    return Check(id="V07", topic=topic, verdict=verdict, message=message, code="TOP601")


GOOD = RunReport(
    environment="local",
    run="topics_local/manual__2026-01-31T23:59:59+00:00 (2)",
    plan=plan_to_create("a", "b"),
    outcomes=(outcome("a", DONE), outcome("b", OutcomeStatus.ALREADY_SO, "")),
    checks=(check("a", Verdict.HEALTHY), check("b", Verdict.HEALTHY)),
)
RULE = QualityResult(
    rule="Q1", title="every partition is led", severity="critical", success=False, rows_checked=9, rows_failed=2
)
PARTIAL = RunReport(
    environment="local",
    plan=plan_to_create("a", "b", "c", "d", "e", held=("f",)),
    outcomes=(
        outcome("a", DONE),
        outcome("b", OutcomeStatus.FAILED, "POLICY_VIOLATION (44)"),
        outcome("c", REFUSED, "the topic changed since the plan (TOP501): partitions: planned 3, live 6; plan again"),
        outcome("d", OutcomeStatus.UNKNOWN, "timed out"),
        outcome("e", OutcomeStatus.NOT_SENT, "the lease is no longer ours"),
    ),
    checks=(check("a", Verdict.DEGRADED, "partition 0 lacks broker 3 in its ISR"),),
    quality_after=(RULE,),
)


def test_a_good_run_is_told_in_one_line_and_asks_for_nothing() -> None:
    assert headline(GOOD) == "Applied and verified: 1 done, 1 already so."
    assert list(next_steps(GOOD)) == []
    assert GOOD.is_success


def test_a_run_with_moves_is_good_and_says_how_to_follow_them() -> None:
    moving = replace(outcome("a", OutcomeStatus.MOVING, "moving 4 of 12 partitions"), action="reassign", sent=True)
    seen = replace(check("a", Verdict.MOVING, "moving 4 of 12 partitions, 61 %"), id="V04")
    report = replace(GOOD, outcomes=(moving, GOOD.outcomes[1]), checks=(seen, GOOD.checks[1]))

    assert headline(report) == "Applied, and replicas still move: 1 already so, 1 moving."
    assert report.is_success
    waiting = replace(report, outcomes=(replace(moving, sent=False),))
    assert headline(waiting) == "Applied, and replicas still move: 1 moving."
    assert reasons_of(report.outcomes) == []
    shows = "1 moving: topicops moves --environment local shows how far"
    assert list(next_steps(replace(report, run="cli/1"))) == [f"{shows}; with --watch it carries them on."]
    assert list(next_steps(replace(report, run="topic_pipeline_local/1"))) == [f"{shows}."]
    text = report_text(report)
    assert "Moving:\n  a reassign: moving: moving 4 of 12 partitions\n" in text
    assert "  1 topic healthy, by ZooKeeper" in text
    assert "  moving: topic.a V04: moving 4 of 12 partitions, 61 % (TOP601)\n" in text


def test_only_a_run_that_changed_something_says_how_it_is_taken_back() -> None:
    undo = "\n\nTo take this run back: topicops undo 'topics_local/manual__2026-01-31T23:59:59+00:00 (2)'\n"
    assert report_text(GOOD).endswith(undo)
    already_so = replace(GOOD, outcomes=GOOD.outcomes[1:])
    refused = replace(GOOD, outcomes=(outcome("a", REFUSED, "moved"),))
    deleted = replace(
        GOOD,
        outcomes=(replace(outcome("a", DONE), action="delete"),),
        checks=(replace(check("a", Verdict.HEALTHY), id="V17"),),
    )
    expanded = replace(GOOD, outcomes=(replace(outcome("a", DONE), action="expand"),))
    assert not any("undo" in report_text(report) for report in (already_so, refused, deleted, expanded))
    assert "1 deleted topic gone, by ZooKeeper" in report_text(deleted)
    assert "healthy" not in report_text(deleted)


@pytest.mark.parametrize(
    ("live", "deleted", "said"),
    [
        pytest.param(Verdict.HEALTHY, None, "What the plan names is healthy: 1 topic checked.", id="live"),
        pytest.param(None, Verdict.HEALTHY, "What the plan names is as planned: 1 deleted topic gone.", id="deleted"),
        pytest.param(
            Verdict.HEALTHY,
            Verdict.HEALTHY,
            "What the plan names is healthy: 1 topic checked, 1 deleted topic gone.",
            id="both",
        ),
        pytest.param(
            None,
            Verdict.CONVERGING,
            "What the plan names is not healthy: 1 topic not healthy, 1 topic checked.",
            id="not gone yet",
        ),
    ],
)
def test_a_deleted_topic_is_gone_and_not_healthy(live: Verdict | None, deleted: Verdict | None, said: str) -> None:
    checks = [check("a", live)] if live else []
    checks += [check("b", Verdict.HEALTHY), replace(check("b", deleted, "left"), id=Code.V17)] if deleted else []
    report = RunReport(environment="e", plan=plan_to_create("a"), checks=tuple(checks))

    assert headline(report) == said
    assert ("1 deleted topic gone, by" in report_text(report)) == (deleted is Verdict.HEALTHY)


def test_a_partial_run_says_what_was_done_what_was_not_and_what_next() -> None:
    text = report_text(PARTIAL)

    assert text.startswith(
        "Applied in part: 1 done, 1 refused, 1 failed, 1 unknown, 1 not sent; 1 held, quality rule Q1 fails.\n"
    )
    assert "  a created\n" in text
    assert "  b create: failed: POLICY_VIOLATION (44)\n" in text
    assert "partitions: planned 3, live 6" in text
    assert "  degraded: topic.a V07: partition 0 lacks broker 3 in its ISR (TOP601)\n" in text
    assert "  after: Q1 every partition is led: FAILED (critical), 2 of 9 rows\n" in text
    assert not PARTIAL.is_success


def test_after_an_approval_the_report_holds_nothing_that_has_an_outcome() -> None:
    plan = plan_to_create("a", held=("b", "c"))
    first, second = (gated for gated in plan.with_gate(GateWord.HELD))
    outcomes = (Outcome.of(first, DONE), Outcome.of(second, REFUSED, "no file asks for it"))
    report = RunReport(environment="local", plan=carried_out(plan, outcomes), outcomes=outcomes)
    assert report.summary.held == 0
    text = report_text(report)
    assert "held" not in text
    assert "--approve" not in text
    assert carried_out(plan, outcomes[:1]).with_gate(GateWord.HELD) == (second,)


def test_every_kind_of_trouble_has_a_next_step() -> None:
    steps = list(next_steps(PARTIAL))

    assert [step.split(":")[0] for step in steps] == [
        "1 of unknown outcome",
        "1 failed",
        "1 refused",
        "1 not sent",
        "Plan again",
        "1 topic not healthy",
        "1 held",
    ]
    assert PARTIAL.plan is not None
    assert PARTIAL.plan.fingerprint in steps[-1]


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        pytest.param(RunReport(environment="e", plan=plan_of()), "No changes.", id="empty plan"),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create(held=("a",))), "Nothing was applied; 1 held.", id="all held"
        ),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create("a"), outcomes=(outcome("a", REFUSED, "moved"),)),
            "Nothing was applied: 1 refused (moved).",
            id="all refused",
        ),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create("a"), outcomes=(replace(outcome("a", UNKNOWN), sent=True),)),
            "Applied in part: 1 unknown.",
            id="a request left and nobody knows what came of it",
        ),
        pytest.param(
            RunReport(
                environment="e",
                plan=plan_to_create("a"),
                outcomes=(outcome("a", DONE),),
                checks=(check("a", Verdict.CONVERGING, "x"),),
            ),
            "Applied, not verified: 1 done, 1 topic not healthy.",
            id="not healthy",
        ),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create("a"), outcomes=(outcome("a", DONE),)),
            "Applied, not verified yet: 1 done.",
            id="verify has not run",
        ),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create("a"), outcomes=(outcome("a", DONE),), interrupted=True),
            "Interrupted: 1 done.",
            id="interrupted",
        ),
        pytest.param(
            RunReport(environment="e", checks=(check("a", Verdict.HEALTHY), check("b", Verdict.HEALTHY))),
            "The cluster is healthy: 2 topics checked.",
            id="a healthy cluster",
        ),
        pytest.param(
            RunReport(
                environment="e",
                checks=(
                    check("a", Verdict.HEALTHY),
                    check("b", Verdict.DEGRADED, "x"),
                    check("", Verdict.FAILED, "no controller is elected"),
                ),
            ),
            "The cluster is not healthy: no controller is elected, 1 topic not healthy, 2 topics checked.",
            id="an unhealthy cluster",
        ),
        pytest.param(RunReport(environment="e"), "Nothing was checked: no topic is live.", id="an empty cluster"),
        pytest.param(
            RunReport(environment="e", plan=plan_to_create("a"), checks=(check("a", Verdict.HEALTHY),)),
            "What the plan names is healthy: 1 topic checked.",
            id="verify of a plan",
        ),
        pytest.param(
            RunReport(environment="e", failed_tasks=("snapshot",)),
            "The run did not end as it should.",
            id="task failed",
        ),
    ],
)
def test_the_first_line_says_how_it_ended(report: RunReport, sentence: str) -> None:
    assert headline(report) == sentence


@pytest.mark.parametrize(
    ("report", "success"),
    [
        pytest.param(RunReport(environment="e", plan=plan_to_create(held=("a",))), True, id="held ones fail nothing"),
        pytest.param(
            RunReport(environment="e", checks=(check("a", Verdict.PRE_EXISTING, "x"),)), True, id="old trouble"
        ),
        pytest.param(RunReport(environment="e", failed_tasks=("t",)), False, id="a task failed"),
        pytest.param(RunReport(environment="e", problem="no lease"), False, id="a problem"),
        pytest.param(RunReport(environment="e", interrupted=True), False, id="interrupted"),
        pytest.param(RunReport(environment="e", quality_before=(RULE,)), False, id="a critical rule"),
        pytest.param(RunReport(environment="e", outcomes=(outcome("a", REFUSED),)), False, id="refused"),
        pytest.param(RunReport(environment="e", checks=(check("a", Verdict.FAILED, "x"),)), False, id="not healthy"),
    ],
)
def test_only_trouble_of_this_run_fails_it(report: RunReport, success: bool) -> None:
    assert report.is_success is success


def test_the_json_holds_all_outcomes_and_only_checks_that_found_something() -> None:
    found = json.loads(json_text(report_json(PARTIAL)))

    assert [entry["status"] for entry in found["outcomes"]] == ["done", "failed", "refused", "unknown", "not sent"]
    assert (found["verdicts"]["degraded"], found["held"]) == (1, 1)
    assert found["checks"] == [
        {
            "id": "V07",
            "topic": "a",
            "verdict": "degraded",
            "message": "partition 0 lacks broker 3 in its ISR",
            "code": "TOP601",
            "brokers": [],
        }
    ]
    assert found["quality_after"][0]["rows_failed"] == 2
    assert report_json(GOOD).checks == []


def test_in_markdown_the_next_step_comes_before_what_was_done() -> None:
    comment = report_markdown(PARTIAL)

    places = [comment.index(word) for word in ("#### Next", "#### Not done", "#### Verified", "#### Done")]
    assert places == sorted(places)


def test_no_control_character_reaches_a_report() -> None:
    evil = RunReport(
        environment="local",
        plan=plan_to_create("a"),
        outcomes=(outcome("a", OutcomeStatus.FAILED, "\x1b]0;title\x07\n| x | <img>"),),
        checks=(check("a", Verdict.FAILED, "\u202e\x9b"),),
        problem="bad \x08",
    )

    for rendered in (report_text(evil), report_markdown(evil)):
        assert not any(c in rendered for c in "\x1b\x07\x08\x9b\u202e")
    assert "<img>" not in report_markdown(evil)


def test_a_run_that_never_got_to_a_plan_has_a_report_too() -> None:
    report = RunReport(environment="local", failed_tasks=("snapshot",), problem="127.0.0.1:2181 does not answer")

    assert "Task snapshot failed; its log says why, or the API server's.\n" in report_text(report)
    assert "127.0.0.1:2181 does not answer\n" in report_text(report)
    assert report_json(report).fingerprint is None


def test_a_verdict_table_has_a_row_for_each_topic_with_all_that_is_wrong() -> None:
    checks = [
        check("b", Verdict.HEALTHY),
        check("a", Verdict.HEALTHY),
        check("a", Verdict.FAILED, "partition 0 has no leader"),
        check("a", Verdict.DEGRADED, "broker 3 is | down"),
        check("", Verdict.DEGRADED, "no controller is elected"),
    ]
    assert verdict_table(checks).splitlines()[2:] == [
        "| cluster | degraded | V07: no controller is elected |",
        "| a | failed | V07: partition 0 has no leader<br>V07: broker 3 is &#124; down |",
        "| b | healthy |  |",
    ]


def test_where_nothing_was_done_there_is_no_table() -> None:
    assert (outcome_table(()), verdict_table(())) == ("", "")


def test_each_unhealthy_topic_has_the_command_that_says_why() -> None:
    checks = (
        check("ours", Verdict.FAILED, "partition 0 has no leader"),
        check("old", Verdict.PRE_EXISTING, "partition 0 lacks broker 3 in its ISR"),
        check("-x", Verdict.DEGRADED, "partition 0 lacks broker 3 in its ISR"),
        check("fine", Verdict.HEALTHY),
        check("", Verdict.DEGRADED, "no controller is elected"),
    )
    report = RunReport(environment="prod", checks=checks)

    commands = {
        "-x": "topicops why --environment prod -- -x",
        "ours": "topicops why ours --environment prod",
        "old": "topicops why old --environment prod",
    }
    assert report_json(report).why == commands
    assert list(report_json(report).why) == list(commands)
    assert all(f"  {command}\n" in report_text(report) for command in commands.values())
    assert "- topicops why ours --environment prod\n" in report_markdown(report)


def test_of_many_unhealthy_topics_the_text_has_the_first_commands_and_the_json_all() -> None:
    report = RunReport(environment="e", checks=tuple(check(f"t-{n}", Verdict.FAILED, "no leader") for n in range(9)))

    assert report_text(report).count("topicops why t-") == MOST
    assert "  … and 5 more; topicops why takes any of them\n" in report_text(report)
    assert len(report_json(report).why) == 9


def test_where_all_is_healthy_nothing_asks_why() -> None:
    report = RunReport(environment="e", checks=(check("a", Verdict.HEALTHY),))

    assert "why" not in report_text(report).lower()
    assert report_json(report).why == {}


def test_many_findings_about_one_broker_are_one_line_and_the_json_has_all() -> None:
    isr = "partition 0 lacks broker 3 in its ISR; broker 3 not live"
    checks = tuple(replace(check(f"t-{n:03}", Verdict.DEGRADED, isr), id=Code.V08, brokers=(3,)) for n in range(590))
    few = tuple(
        replace(
            check(f"t-{n:03}", Verdict.DEGRADED, "partition 0 lacks broker 2 in its ISR"), id=Code.V08, brokers=(2,)
        )
        for n in range(3)
    )
    report = RunReport(environment="local", checks=(*checks, *few))

    lines = report_text(report).splitlines()

    (line,) = (line for line in lines if "lacks broker 3" in line)
    assert line.startswith("  degraded: V08 about broker 3: 590 findings on 590 topics (t-000, t-001, ")
    assert line.endswith(f" more), such as {isr}")
    assert sum("lacks broker 2" in line for line in lines) == len(few)
    assert len(report_json(report).checks) == 593


def test_of_many_findings_about_no_broker_ten_are_shown() -> None:
    checks = tuple(check(f"t-{n:03}", Verdict.FAILED, f"cleanup.policy differs {n}") for n in range(590))
    lines = report_text(RunReport(environment="local", checks=checks)).splitlines()

    assert sum("differs" in line for line in lines) == EXAMPLES
    assert "    … and 580 more; all are in report.json of this run" in lines


@pytest.mark.parametrize(("count", "rows"), [pytest.param(3, 3, id="few"), pytest.param(41, 1, id="many")])
def test_many_changes_with_one_reason_are_one_row_and_the_json_has_all(count: int, rows: int) -> None:
    why = "its replicas are on broker 2, not live: start it"
    refused = [replace(outcome(f"t-{n:02}", OutcomeStatus.REFUSED), message=why, action="delete") for n in range(count)]
    other = replace(outcome("other", OutcomeStatus.REFUSED), message=why)
    report = RunReport(environment="e", outcomes=(other, *refused))

    text, comment = report_text(report), report_markdown(report)

    lines = [line for line in text.split("Not done:")[1].splitlines() if why in line]
    assert "  other create: refused: its replicas" in lines[0]
    assert len(lines) == rows + 1
    assert comment.count(f"| {why} |") == rows + 1
    if rows == 1:
        assert lines[1].startswith(f"  41 topics delete: refused: {why} (t-00, t-01, ")
        assert "| 41 topics: t-00, t-01, " in comment
    assert len(report_json(report).outcomes) == count + 1


def test_the_first_line_does_not_contradict_what_follows() -> None:
    old = RunReport(environment="e", checks=(check("a", Verdict.PRE_EXISTING, "x"), check("b", Verdict.HEALTHY)))
    assert headline(old) == (
        "The cluster is not worse than before: 2 topics checked; 1 topic not healthy before the run either."
    )
    applied = replace(old, plan=plan_to_create("a"), outcomes=(outcome("a", DONE),))
    assert headline(applied) == "Applied and verified: 1 done; 1 topic not healthy before the run either."
    failing = replace(GOOD, quality_after=(replace(RULE, success=False, severity="critical"),))
    assert headline(failing) == f"Applied and verified: 1 done, 1 already so; quality rule {RULE.rule} fails."


@pytest.mark.parametrize(
    ("topic", "message", "shown"),
    [
        pytest.param("orders", "topic.orders has 3 partitions", "the topic has 3 partitions", id="as logs name it"),
        pytest.param("orders", "no file describes orders.", "no file describes the topic.", id="at the end"),
        pytest.param("test", "the latest plan is older", "the latest plan is older", id="a part of a word"),
        pytest.param("orders", "orders-v2 and a.orders.b differ", "orders-v2 and a.orders.b differ", id="other topics"),
    ],
)
def test_only_the_topic_s_whole_name_is_left_out(topic: str, message: str, shown: str) -> None:
    outcome = Outcome(topic=topic, action="create", digest="d", status=OutcomeStatus.REFUSED, message=message)
    (reason,) = reasons_of([outcome])
    assert reason.message == shown
