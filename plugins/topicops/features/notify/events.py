"""The events of a run, and which of them are new to a receiver."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Plan
from topicops.model.printable import first_line_of, plural
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.reporting.run_report import RunReport, first_problem, headline, reasons_of
from topicops.steps.reporting.run_result import failing_rules, most_of_a_broker, unhealthy_verdict

EventKind = Literal[
    "held", "approved", "rejected", "withdrawn", "blocked", "applied", "failed", "outdated", "unhealthy", "drift",
    "recovered",
]  # fmt: skip

WORDS: Mapping[EventKind, str] = {
    "held": "changes that are held",
    "blocked": "topics that are blocked",
    "failed": "a run that failed",
    "outdated": "files that Airflow does not fetch",
    "unhealthy": "a cluster that is not healthy",
    "drift": "differences between files and cluster",
}
"""Words for the kinds that stay as they are from run to run, until their cause is gone."""
TROUBLE: frozenset[EventKind] = frozenset(WORDS) - {"held"}
"""Kinds of trouble; ``recovered`` is sent when they are over."""
NAMED = 5
"""Number of topics or changes that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: EventKind
    environment: str
    verdict: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of ``changes``, ``topics``, ``partitions`` and the like; only what the kind has."""
    cause: str
    """Text that makes it distinct: an event of the same kind and cause is sent once. Not for people."""
    run: str
    """Name: ``<DAG>/<run id>``."""
    format_version: FormatVersion = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Last events of each receiver, about what may still last."""

    format_version: FormatVersion = "1.0"
    causes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Cause by kind, by receiver."""


def events_of_run(report: RunReport, *, mode: str, asked: Collection[str] = ()) -> Iterator[Event]:
    """Yield what happened in this run, and what lasts after it.

    Args:
        mode: ``apply``, ``plan``, or ``approval`` for the run that asks a person.
        asked: Digests of the held changes about which a person is asked, or was and said no.
    """
    if done := [outcome for outcome in report.outcomes if outcome.status in (OutcomeStatus.DONE, OutcomeStatus.MOVING)]:
        verdict = f"{headline(report)} {named(f'{outcome.action} {outcome.topic}' for outcome in done)}."
        yield _event(report, "applied", verdict, {"changes": len(done)}, sorted(outcome.digest for outcome in done))
    yield from _failed(report)
    if mode == "approval":
        return  # its plan is a part; the pipeline tells of the whole
    yield from _unhealthy(report)
    if report.plan is not None:
        yield from _of_plan(report, report.plan, mode=mode, asked=asked)


def _failed(report: RunReport) -> Iterator[Event]:
    missed = report.missed
    unhealthy = sorted({check.topic for check in report.summary.unhealthy})
    if not (report.failed_tasks or report.problem or missed or unhealthy):
        return
    parts = [
        "; ".join(map(str, reasons_of(missed)[:NAMED])),
        first_problem(report),
        first_line_of(report.problem).rstrip("."),
        f"{named(report.failed_tasks)} failed" if report.failed_tasks else "",
        named(f"{outcome.action} {outcome.topic}" for outcome in missed),
        f"not healthy after the changes: {named(unhealthy)}" if unhealthy else "",
    ]
    cause = [
        first_problem(report),
        *report.failed_tasks,
        *(f"{outcome.topic} {outcome.status}" for outcome in missed),
        *unhealthy,
    ]
    verdict = f"The run failed: {'; '.join(filter(None, parts))}."
    yield _event(report, "failed", verdict, {"tasks": len(report.failed_tasks), "changes": len(missed)}, cause)


def _unhealthy(report: RunReport) -> Iterator[Event]:
    """Yield one event for all that the same brokers and rules show, whatever the number of partitions."""
    facts, rules = report.newest_facts, sorted({rule.rule for rule in failing_rules(report)})
    if verdict := unhealthy_verdict(report):
        ids = {found.broker for found in facts.unhealthy} if facts else set()
        brokers = sorted("partitions of no broker" if broker is None else f"broker {broker}" for broker in ids)
        counts = {"partitions": most_of_a_broker(facts), "rules": len(rules)}
        event = _event(report, "unhealthy", verdict, counts, ())
        yield replace(event, cause="\n".join([*brokers, *rules]))  # readable, so that a part of it can be over


def _of_plan(report: RunReport, plan: Plan, *, mode: str, asked: Collection[str]) -> Iterator[Event]:
    if blocked := plan.change_set.blocked:
        names = named(f"{found.topic} ({', '.join(found.codes)})" for found in blocked)
        verdict = f"{plural(len(blocked), 'topic')} blocked: {names}. The plan names the way out of each."
        cause = sorted(f"{found.topic} {' '.join(found.codes)}" for found in blocked)
        yield _event(report, "blocked", verdict, {"topics": len(blocked)}, cause)
    if mode == "plan" and plan.changes:
        names = named(f"{gated.change.action} {gated.change.topic}" for gated in plan.changes)
        verdict = f"The cluster differs from the files, and mode plan sends nothing: {names}."
        digests = sorted(gated.digest for gated in plan.changes)
        yield _event(report, "drift", verdict, {"changes": len(digests)}, digests)
    held = [gated for gated in plan.with_gate(GateWord.HELD) if gated.digest not in asked]
    if held and mode != "plan":
        names = named(f"{gated.change.action} {gated.change.topic}" for gated in held)
        reasons = named(sorted({reason for gated in held for reason in gated.reasons}))
        verdict = f"{plural(len(held), 'change')} held, and nobody is asked: {names}; {reasons}."
        yield _event(report, "held", verdict, {"changes": len(held)}, sorted(gated.digest for gated in held))


def drift_event(report: RunReport, differences: Sequence[str]) -> Iterator[Event]:
    """Yield one event if there are differences, of which each has a line."""
    if differences:
        verdict = f"The cluster differs from the files in {plural(len(differences), 'place')}: {named(differences)}."
        yield _event(report, "drift", verdict, {"differences": len(differences)}, sorted(differences))


def _event(report: RunReport, kind: EventKind, verdict: str, counts: Mapping[str, int], cause: Sequence[str]) -> Event:
    return Event(
        kind=kind,
        environment=report.environment,
        verdict=verdict,
        counts=counts,
        cause=hashlib.sha256("\n".join(cause).encode()).hexdigest(),
        run=report.run,
    )


def named(names: Iterable[str]) -> str:
    """Name the first ones, and count the others."""
    listed = list(names)
    more = [f"{len(listed) - NAMED} more"] if len(listed) > NAMED else []
    return ", ".join([*listed[:NAMED], *more])


# ---- what is news ----


def judged_by(report: RunReport) -> frozenset[EventKind]:
    """Name the lasting kinds that a whole run could see: of the others it cannot say that they are over."""
    seen: set[EventKind] = {"failed"}
    if evaluated_rules(report):
        seen.add("unhealthy")
    if report.plan is not None:
        seen |= {"blocked", "held", "drift"}
    return frozenset(seen)


def evaluated_rules(report: RunReport) -> frozenset[str]:
    """Name the quality rules that this run could judge: in mode plan, for example, only those before the changes."""
    return frozenset(result.rule for result in (*report.quality_before, *report.quality_after))


def news(found: Sequence[Event], told: Mapping[str, str], over: Event, *, rules: Collection[str]) -> Iterator[Event]:
    """Yield what a receiver does not know: causes that are new to it, and which troubles are over, or a part of one.

    Args:
        told: What it was told last, cause by kind.
        over: The event ``recovered``, of all that this run could see and did not find.
        rules: Which quality rules this run evaluated; of a cause with another rule nothing is called over.
    """
    rules_of = {kind: {part for part in cause.splitlines() if part.startswith("Q")} for kind, cause in told.items()}
    seen = {kind for kind, named_rules in rules_of.items() if named_rules.issubset(rules)}
    gone = [kind for kind in over.cause.split() if kind in TROUBLE and kind in seen]
    less = {event.kind: parts for event in found if (parts := _parts_over(event, told))}
    yield from (event for event in found if told.get(event.kind) != event.cause and event.kind not in less)
    parts_over = {kind: parts for kind, parts in less.items() if kind in seen}
    if gone or parts_over:
        what = [*(WORDS[kind] for kind in gone), *chain.from_iterable(parts_over.values())]
        left = [event.verdict for event in found if event.kind in parts_over] or [over.verdict]
        verdict = f"Over: {', '.join(what)}. {' '.join(left)}"
        yield replace(over, verdict=verdict, cause=" ".join([*gone, *parts_over]))


def _parts_over(event: Event, told: Mapping[str, str]) -> Sequence[str]:
    """Name the parts of the told cause that are over, if nothing came to it."""
    before, now = told.get(event.kind, "").splitlines(), event.cause.splitlines()
    return [part for part in before if part not in now] if set(now) < set(before) else []


def recovered(report: RunReport, found: Sequence[Event], judged: Collection[EventKind]) -> Event:
    """Make the event of all kinds that this run could see and did not find; its cause has their names."""
    gone = [kind for kind in WORDS if kind in judged and kind not in {event.kind for event in found}]
    left = sorted({event.kind for event in found if event.kind in TROUBLE})
    verdict = f"Still there: {', '.join(WORDS[kind] for kind in left)}." if left else headline(report)
    return replace(_event(report, "recovered", verdict, {}, ()), cause=" ".join(gone))


def told_after(told: Mapping[str, str], event: Event, found: Sequence[Event]) -> dict[str, str]:
    """Say what a receiver knows after it was told of this event, of all that the run found."""
    if event.kind != "recovered":
        return {**told, event.kind: event.cause}
    over = event.cause.split()
    left: dict[str, str] = {other.kind: other.cause for other in found if other.kind in over}
    return {**{kind: cause for kind, cause in told.items() if kind not in over}, **left}
