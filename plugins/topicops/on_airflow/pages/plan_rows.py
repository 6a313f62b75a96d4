"""One row of the Plan page: a change with what it changes, its risk and what came of it, or a blocked topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from topicops.model.cluster.broker_defaults import Default, default_text
from topicops.model.plans.changes import (
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    ReassignTopic,
)
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import plural, printable
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.environment import Risk
from topicops.on_airflow.pages.parts import file_link
from topicops.on_airflow.pages.reading import PlanModel
from topicops.on_airflow.plugged_at_start import topic_link
from topicops.steps.reporting.markup import Html, lines, pill, tag, together
from topicops.steps.reporting.plan_wording import (
    MOST_MOVES,
    SIGNS,
    default_in_units,
    disk_lines,
    effect_lines,
    factors_text,
    in_units,
    move_lines,
    moved_rows,
    origin,
    replicas_by_broker,
    risk_text,
    traffic_text,
    why_final,
)

APPROVED, REJECTED, BLOCKED = "approved", "rejected", "blocked"
TONES: dict[str, str] = {
    OutcomeStatus.DONE: "good",
    OutcomeStatus.ALREADY_SO: "good",
    OutcomeStatus.MOVING: "calm",
    OutcomeStatus.REFUSED: "warn",
    OutcomeStatus.NOT_SENT: "warn",
    OutcomeStatus.FAILED: "bad",
    OutcomeStatus.UNKNOWN: "bad",
    APPROVED: "good",
    REJECTED: "bad",
    GateWord.RUN: "good",
    GateWord.HELD: "warn",
    GateWord.SKIPPED: "bad",
    BLOCKED: "bad",
}
"""Colour of each state, in the order in which the tiles show them."""
_RISK_TONES = {Risk.SAFE: "calm", Risk.NOTICE: "calm", Risk.RISKY: "warn", Risk.DESTRUCTIVE: "bad"}
_ROWS_SHOWN = 256
_DIGITS = 12
"""Number of digits of a digest, in a row and in its id."""


def state_of(model: PlanModel, gated: GatedChange) -> str:
    """Return what came of the change, what a person said of it, or the gate's word; a key of ``TONES``."""
    answer = model.question.answer if model.question else None
    if outcome := model.outcomes.get(gated.digest):
        return outcome.status.value
    if answer and gated.digest in answer.rejected:
        return REJECTED
    if answer and gated.digest in answer.approved:
        return APPROVED
    return REJECTED if gated.digest in model.rejections else gated.gate.value


def change_row(model: PlanModel, plan: Plan, gated: GatedChange) -> Html:
    """Return a table row that a link can name: ``#change-4084ab12cd34``."""
    anchor = f"change-{gated.digest[:_DIGITS]}"
    word = state_of(model, gated)
    state = together(pill(word, TONES[word]), lines(_why(model, gated)))
    cells = (_subject(gated, anchor), together(*_what(plan, gated)), _risk(gated), state)
    return tag("tr", *(tag("td", cell) for cell in cells), id=anchor)


def _subject(gated: GatedChange, anchor: str) -> Html:
    change = gated.change
    digest = tag("code", gated.digest[:_DIGITS], title=gated.digest, cls="digest")
    return together(
        tag("span", f"{SIGNS[change.action]} {change.action}", cls=f"action {change.action}"),
        tag("div", topic_link(change.topic)),
        tag("div", origin(change.location, change.owner), cls="muted"),
        tag("a", digest, href=f"#{anchor}", cls="muted", title="link to this change"),
    )


def _what(plan: Plan, gated: GatedChange) -> Iterator[Html]:
    """Yield what the change does: old values on red, new ones on green, and the exact ones behind them.

    Replica lists are folded, because a topic may have a thousand.
    """
    change = gated.change
    for found in differences(change):
        before = tag("del", found.before) if found.before else None
        after = tag("ins", found.after) if found.after else None
        exact = tag("span", f" {found.exact}", cls="muted") if found.exact else None
        arrow = " → " if before and after else None
        yield tag("div", tag("span", f"{found.name} ", cls="name"), before, arrow, after, exact, cls="diff")
    if isinstance(change, CreateTopic | ExpandTopic):
        shown = list(effect_lines(change, most_rows=_ROWS_SHOWN))
        first = next((at for at, line in enumerate(shown) if line.startswith("replicas:")), len(shown))
        new = "new " if isinstance(change, ExpandTopic) else ""
        label = f"replicas of {plural(change.new_partitions, f'{new}partition')}"
        yield tag("details", tag("summary", label), tag("div", lines(shown[first:]), cls="replicas"))
    if isinstance(change, ReassignTopic):
        yield tag("div", next(move_lines(change)))
        label = f"replicas of {plural(len(change.assignment), 'partition')}"
        yield tag("details", tag("summary", label), tag("div", lines(moved_rows(change, MOST_MOVES)), cls="replicas"))
    if isinstance(change, DeleteTopic):
        yield tag("div", f"reason: {change.reason}")
        yield tag("div", traffic_text(plan.change_set.activity.get(change.topic)))
        yield tag("div", f"topic id: {change.topic_id or 'none'}", cls="muted")
    yield from (tag("div", line) for line in disk_lines(plan, [change]))
    yield from (tag("div", f"note: {note}", cls="note") for note in change.notes)


def _risk(gated: GatedChange) -> Html:
    change = gated.change
    why = risk_text(change).partition(", ")[2]
    final = f"cannot be undone: {why_final(change)}"
    return together(
        pill(change.risk.value, _RISK_TONES[change.risk]),
        tag("div", why, cls="muted") if why else None,
        None if change.reversible else tag("div", final, cls="final"),
    )


def _why(model: PlanModel, gated: GatedChange) -> Iterator[str]:
    answer, earlier = model.question.answer if model.question else None, model.rejections.get(gated.digest)
    outcome = model.outcomes.get(gated.digest)
    if outcome:
        yield from filter(None, [outcome.message])
    if answer and gated.digest in answer.approved | answer.rejected:
        word = APPROVED if gated.digest in answer.approved else REJECTED
        yield f"{word} by {answer.by}{f': {answer.comment}' if answer.comment else ''}"
    elif earlier and not outcome:
        yield str(earlier)
    elif not outcome:
        yield from gated.reasons
    if not outcome and state_of(model, gated) == REJECTED:
        yield "It rests until it changes."


def blocked_row(blocked: Blocked) -> Html:
    place = blocked.spec or blocked.location
    elsewhere = f"; asked for in {blocked.location}" if place.file != blocked.location.file else ""
    move = tag("details", tag("summary", "for Kafka's reassignment tool"), tag("code", blocked.reassignment))
    cells = (
        together(
            tag("div", topic_link(blocked.topic)), tag("div", f"{origin(place, blocked.owner)}{elsewhere}", cls="muted")
        ),
        lines(blocked.wanted or ("not known",)),
        lines(f"{code}: {reason}" for code, reason in zip(blocked.codes, blocked.reasons, strict=False)),
        together(tag("div", blocked.way_out), move if blocked.reassignment else None),
    )
    return tag("tr", *(tag("td", cell) for cell in cells), id=f"blocked-{blocked.topic}")


def diagnostic_row(found: Diagnostic, commit_address: str) -> tuple[Html | str, ...]:
    return (
        file_link(commit_address, found.file, found.line, found.column),
        together(pill(found.severity.value, "bad" if found.severity.value == "error" else "warn"), f" {found.code}"),
        together(tag("div", found.summary), tag("div", found.help, cls="muted") if found.help else None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that changes; a side without a value is empty."""

    name: str
    before: str = ""
    after: str = ""
    exact: str = ""
    """Both values as the broker has them, if they are shown differently: ``2592000000 -> 259200000``."""

    def __str__(self) -> str:
        """Return ``retention.ms 30d -> 3d``."""
        return f"{self.name} {' -> '.join(filter(None, (self.before, self.after)))}"


def differences(change: Change) -> Iterator[Difference]:
    """Yield what the change changes; of a delete, what goes."""
    match change:
        case CreateTopic():
            yield Difference(name="partitions", after=str(change.partitions))
            yield Difference(name="replication factor", after=str(change.replication_factor))
            for name, value in sorted(change.configs.items()):
                yield _config(name, None, value, (), is_new=True)
        case ExpandTopic():
            yield Difference(name="partitions", before=str(change.partitions_before), after=str(change.partitions))
        case ConfigureTopic():
            for name in sorted(change.configs):
                yield _config(name, change.configs_before.get(name), change.configs[name], change.default(name))
        case ReassignTopic():
            yield from _moved(change)
        case DeleteTopic():
            yield Difference(name="partitions", before=str(change.partitions))
        case _:
            assert_never(change)


def _moved(change: ReassignTopic) -> Iterator[Difference]:
    before, after = factors_text(change.assignment_before), factors_text(change.assignment)
    if change.is_order_only:
        yield Difference(name=f"preferred leaders of {plural(len(change.assignment), 'partition')}", after="others")
    if before != after:
        yield Difference(name="replication factor", before=before, after=after)
    if change.removed:
        yield Difference(name="replicas removed", before=replicas_by_broker(change.removed))
    if change.added:
        yield Difference(name="replicas added", after=replicas_by_broker(change.added))


def _config(name: str, before: str | None, after: str | None, default: Default, *, is_new: bool = False) -> Difference:
    sides = [default_text(default) if value is None else value for value in ((after,) if is_new else (before, after))]
    values = [value for value in (before, after, *(row.value for row in default)) if value is not None]
    is_clear = all(in_units(name, value) == value for value in values)
    return Difference(
        name=printable(name),
        before="" if is_new else printable(_value(name, before, default)),
        after=printable(_value(name, after, default)),
        exact="" if is_clear else printable(" -> ".join(sides)),
    )


def _value(name: str, value: str | None, default: Default) -> str:
    if value is not None:
        return in_units(name, value)
    return f"broker default {default_in_units(name, default)}" if default else "broker default"
