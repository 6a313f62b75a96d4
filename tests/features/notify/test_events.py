"""What of a run somebody is told, and what of it is news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fakes.builders import diagnostic
from fakes.changes import plan_to_create
from topicops.features.notify.events import (
    Event,
    EventKind,
    evaluated_rules,
    events_of_run,
    judged_by,
    news,
    recovered,
    told_after,
)
from topicops.model.runs.facts import Facts, UnhealthyPartitions
from topicops.model.runs.results import Check, FailingRow, Outcome, OutcomeStatus, QualityResult, Verdict
from topicops.steps.reporting.run_report import RunReport, headline

RULE = QualityResult(
    rule="Q12", title="every replica is in sync", severity="warning", success=False, rows_checked=9, rows_failed=2
)
HOLDS = replace(RULE, success=True, rows_failed=0)


def report(**fields: object) -> RunReport:
    given = {
        "environment": "local",
        "run": "topic_pipeline_local/1",
        "plan": plan_to_create(),
        "quality_before": (HOLDS,),
    }
    return RunReport(**{**given, **fields})  # type: ignore[arg-type]  # fields by name


def outcome(topic: str, status: OutcomeStatus) -> Outcome:
    return Outcome(topic=topic, action="create", digest=topic, status=status, sent=True)


def dead(broker: int, partitions: int) -> Facts:
    found = UnhealthyPartitions(broker=broker, rack=None, rule="Q12", partitions=partitions)
    return Facts(load=(), unhealthy=(found,), has_states=True)


def events(found: RunReport, mode: str = "apply", asked: Sequence[str] = ()) -> dict[EventKind, Event]:
    return {event.kind: event for event in events_of_run(found, mode=mode, asked=asked)}


def test_nothing_is_told_of_a_run_in_which_all_is_well() -> None:
    assert events(report()) == {}


def test_what_was_applied_is_told_with_its_topics() -> None:
    told = events(report(plan=plan_to_create("a"), outcomes=(outcome("a", OutcomeStatus.DONE),)))
    assert told.keys() == {"applied"}
    assert told["applied"].verdict == "Applied, not verified yet: 1 done. create a."
    assert told["applied"].counts == {"changes": 1}


def test_a_move_is_told_when_it_begins() -> None:
    begun = replace(outcome("a", OutcomeStatus.MOVING), action="reassign")
    told = events(report(plan=plan_to_create("a"), outcomes=(begun,)))
    assert told.keys() == {"applied"}
    assert told["applied"].verdict == "Applied, and replicas still move: 1 moving. reassign a."


def test_a_failed_run_says_what_failed() -> None:
    check = Check(id="V07", topic="a", verdict=Verdict.DEGRADED, message="broker 3 lags", code="TOP601")
    told = events(report(failed_tasks=("create",), outcomes=(outcome("a", OutcomeStatus.FAILED),), checks=(check,)))
    assert told["failed"].verdict == (
        "The run failed: 1 failed; create failed; create a; not healthy after the changes: a."
    )


def test_the_common_reason_leads() -> None:
    refused = [
        replace(outcome(f"t{n}", OutcomeStatus.REFUSED), message=f"t{n}: broker 2 is not live") for n in range(40)
    ]
    told = events(report(failed_tasks=("create",), outcomes=(outcome("a", OutcomeStatus.DONE), *refused)))
    assert told["failed"].verdict.startswith(
        "The run failed: 40 refused: the topic: broker 2 is not live; create failed"
    )
    assert told["applied"].verdict.startswith("Applied in part: 1 done, 40 refused (the topic: broker 2 is not live).")


def test_a_file_with_an_error_is_named_with_its_place() -> None:
    wrong = (diagnostic(),) * 2
    told = events(report(plan=None, failed_tasks=("validate",), diagnostics=wrong))
    assert "topics/a.yaml:3: TOP101 no owner; 1 more" in told["failed"].verdict
    assert "topics/a.yaml:3: TOP101 no owner; 1 more" in headline(report(plan=None, problem="x", diagnostics=wrong))


def test_a_headline_names_only_topics_of_the_files_that_a_rule_of_their_partitions_names() -> None:
    def failing(rule: str, topic: str) -> QualityResult:
        return replace(RULE, rule=rule, examples=(FailingRow(row={"topic": topic}),))

    rules = (failing("Q12", "shop.sick"), failing("Q06", "shop.well"), failing("Q27", "of.others"))
    topics = frozenset(("shop.sick", "shop.well"))
    said = headline(report(facts_before=dead(3, 2), quality_before=rules, topics=topics))
    assert "partitions of shop.sick are not healthy" in said
    assert "shop.well" not in said


def test_a_rule_is_said_in_words_with_its_first_topic() -> None:
    row = FailingRow(row={"topic": "shop.orders"})
    told = events(report(quality_before=(replace(RULE, rows_failed=4, examples=(row,)),)))
    assert told["unhealthy"].verdict == (
        "The cluster is not healthy: every replica is in sync (Q12): not so for shop.orders, 3 more."
    )


def test_a_dead_broker_is_one_event_however_many_partitions_it_leaves_behind() -> None:
    few, many = (events(report(facts_before=dead(3, count), quality_before=(RULE,))) for count in (2, 108))
    assert many["unhealthy"].verdict == (
        "The cluster is not healthy: broker 3: 108 partitions with a replica outside the ISR (Q12)."
    )
    assert few["unhealthy"].cause == many["unhealthy"].cause
    assert events(report(facts_before=dead(2, 2), quality_before=(RULE,)))["unhealthy"].cause != few["unhealthy"].cause


def test_held_changes_are_told_only_if_nobody_is_asked_about_them() -> None:
    plan = plan_to_create(held=("a", "b"))
    first, second = plan.changes
    assert events(report(plan=plan), asked=[first.digest, second.digest]) == {}
    told = events(report(plan=plan), asked=[first.digest])
    assert told["held"].counts == {"changes": 1}
    assert "create b" in told["held"].verdict


def test_in_mode_plan_what_would_be_sent_is_drift() -> None:
    assert events(report(plan=plan_to_create("a")), mode="plan").keys() == {"drift"}
    assert events(report(plan=plan_to_create("a"))) == {}


def test_the_run_that_asks_tells_only_how_it_ended() -> None:
    found = report(plan=plan_to_create("a"), facts_before=dead(3, 2), outcomes=(outcome("a", OutcomeStatus.DONE),))
    assert events(found, mode="approval").keys() == {"applied"}


# ---- what is news ----


def heard(told: dict[str, str], found: RunReport) -> tuple[list[Event], dict[str, str]]:
    """Return what a receiver hears of this run, and what he knows then."""
    all_events = tuple(events_of_run(found, mode="apply"))
    fresh = list(news(all_events, told, recovered(found, all_events, judged_by(found)), rules=evaluated_rules(found)))
    for event in fresh:
        told = told_after(told, event, all_events)
    return fresh, told


def test_a_cause_is_told_once_and_again_when_it_is_over() -> None:
    sick = report(facts_before=dead(3, 108), quality_before=(RULE,))
    first, told = heard({}, sick)
    second, told = heard(told, replace(sick, facts_before=dead(3, 90)))
    third, told = heard(told, report())
    fourth, told = heard(told, report())
    assert [[event.kind for event in fresh] for fresh in (first, second, third, fourth)] == [
        ["unhealthy"],
        [],
        ["recovered"],
        [],
    ]
    assert third[0].verdict == "Over: a cluster that is not healthy. No changes."
    assert told == {}


def test_what_is_left_of_a_cause_is_told_as_a_part_that_is_over_and_may_grow_again() -> None:
    leaders = replace(RULE, rule="Q16", title="each broker leads what prefers it")
    sick = report(facts_before=dead(3, 2), quality_before=(RULE, leaders))
    _, told = heard({}, sick)
    back, told = heard(told, report(quality_before=(HOLDS, leaders)))
    assert [(event.kind, event.verdict) for event in back] == [
        (
            "recovered",
            "Over: broker 3, Q12. The cluster is not healthy: "
            "each broker leads what prefers it (Q16): not so, 2 times.",
        )
    ]
    again, told = heard(told, sick)
    assert [event.kind for event in again] == ["unhealthy"]
    over, told = heard(told, report(quality_before=(HOLDS, replace(leaders, success=True, rows_failed=0))))
    assert ([event.kind for event in over], told) == (["recovered"], {})


def test_a_rule_before_the_changes_is_over_when_it_holds_in_a_run_that_ended_with_rules_after_them() -> None:
    stops = replace(RULE, rule="Q05", title="an input", severity="critical")
    _, told = heard({}, report(plan=None, quality_before=(stops,), failed_tasks=("quality_before",)))
    holds = replace(stops, success=True, rows_failed=0)
    fresh, _ = heard(told, report(quality_before=(holds,), quality_after=(HOLDS,)))
    assert [event.cause for event in fresh] == ["failed unhealthy"]


def test_a_run_that_has_not_evaluated_a_rule_does_not_say_that_it_holds_again() -> None:
    leaders = replace(RULE, rule="Q16", title="each broker leads what prefers it")
    _, told = heard({}, report(facts_before=dead(3, 2), quality_before=(HOLDS,), quality_after=(RULE, leaders)))
    for in_mode_plan in (report(facts_before=dead(3, 2)), report()):
        fresh, told = heard(told, in_mode_plan)
        assert fresh == []
    over, _ = heard(told, report(quality_after=(HOLDS, replace(leaders, success=True, rows_failed=0))))
    assert [event.kind for event in over] == ["recovered"]


def test_another_cause_of_the_same_kind_is_news() -> None:
    _, told = heard({}, report(facts_before=dead(3, 2), quality_before=(RULE,)))
    fresh, _ = heard(told, report(facts_before=dead(2, 2), quality_before=(RULE,)))
    assert [event.kind for event in fresh] == ["unhealthy"]


def test_a_run_that_did_not_look_says_of_nothing_that_it_is_over() -> None:
    _, told = heard({}, report(facts_before=dead(3, 2), quality_before=(RULE,)))
    fresh, told = heard(told, report(plan=None, quality_before=(), failed_tasks=("validate",)))
    assert [event.kind for event in fresh] == ["failed"]
    fresh, told = heard(told, report())
    assert [(event.kind, event.cause) for event in fresh] == [("recovered", "failed unhealthy")]


def test_a_trouble_that_is_over_beside_one_that_is_not_names_both() -> None:
    sick = report(facts_before=dead(3, 2), quality_before=(RULE,))
    _, told = heard({}, replace(sick, failed_tasks=("create",)))
    fresh, _ = heard(told, sick)
    assert [event.verdict for event in fresh] == [
        "Over: a run that failed. Still there: a cluster that is not healthy."
    ]
