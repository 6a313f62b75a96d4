"""The Plan tab: what a reviewer must know of a change, what an approval would cover, and how replicas are spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from topicops.model.plans.changes import CreateTopic, DeleteTopic, ExpandTopic, GateWord
from topicops.model.plans.load_table import Share
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import plural
from topicops.model.runs.facts import DRIFT_CLASSES, Facts
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.model.specs.environment import Risk
from topicops.on_airflow.pages.frame import STATIC, heading, nothing, problem_box
from topicops.on_airflow.pages.markup import Html, document, lines, pill, table, tag, together
from topicops.on_airflow.pages.reading import PlanModel, Question
from topicops.steps.reporting.facts_wording import OWNERS_HEAD, OWNERS_TITLE, owners_with_drift
from topicops.steps.reporting.plans.plan_wording import (
    SIGNS,
    effect_lines,
    final_hold_line,
    final_line,
    growth_texts,
    is_grave,
    origin,
    other_lines,
    risk_text,
    summary_line,
    traffic_text,
    why_final,
)

CHANGES_SHOWN = 500
"""More would make the page slow; the plan file has all changes."""
LOADS_SHOWN = 60
"""Brokers, or racks."""
_ROWS_SHOWN = 256
_GATE_TONES = {GateWord.RUN: "good", GateWord.HELD: "warn", GateWord.SKIPPED: "bad"}
_RISK_TONES = {Risk.SAFE: "calm", Risk.NOTICE: "calm", Risk.RISKY: "warn", Risk.DESTRUCTIVE: "bad"}
_OUTCOME_TONES = {
    OutcomeStatus.DONE: "good",
    OutcomeStatus.ALREADY_SO: "good",
    OutcomeStatus.REFUSED: "warn",
    OutcomeStatus.NOT_SENT: "warn",
    OutcomeStatus.FAILED: "bad",
    OutcomeStatus.UNKNOWN: "bad",
}
_CHANGES_HEAD = ("change", "what", "risk", "gate", "digest")
_BLOCKED_HEAD = ("topic", "why", "way out")


def plan_page(model: PlanModel) -> str:
    """The whole document."""
    head = [heading("Plan", model.run), *map(problem_box, model.problems)]
    if model.plan is None:
        parts: list[Html | None] = [
            nothing(model.run, model.quiet or "This run has no plan: its gate has not come to a word.")
        ]
    else:
        parts = _parts(model, model.plan)
    return document(f"Plan of {model.run.run_id}", *head, *parts, static=STATIC).text


def _parts(model: PlanModel, plan: Plan) -> list[Html | None]:
    grave = sorted((g for g in plan.changes if is_grave(g)), key=lambda gated: -gated.change.risk.rank)
    others = [gated for gated in plan.changes if not is_grave(gated)]
    return [
        _summary(plan),
        _approval(plan, model.question),
        _changes("Look at these first", model, plan, grave),
        _changes("Other changes" if grave else "Changes", model, plan, others),
        _blocked(plan),
        _owners(model.facts),
        _balance(plan),
        _also(plan),
    ]


def _summary(plan: Plan) -> Html:
    target, source = plan.target, plan.change_set.source
    counts = [(len(plan.with_gate(word)), word.value, tone) for word, tone in _GATE_TONES.items()]
    counts.append((len(plan.change_set.blocked), "blocked", "bad"))
    tiles = tag("ul", *(_tile(count, word, tone) for count, word, tone in counts), cls="tiles")
    final = final_line(plan)
    where = (
        f"{target.environment}, cluster {target.cluster_id}, chroot {target.chroot or '/'}; "
        f"{source.topics:,} topics described, commit {source.commit or 'not known'}"
    )
    return together(
        tag("p", summary_line(plan), cls="verdict"),
        tag("p", where, cls="muted"),
        tag("p", "fingerprint ", tag("code", plan.fingerprint, cls="digest"), cls="muted"),
        None if plan.is_empty else tiles,
        tag("p", final, cls="card bad") if final else None,
    )


def _tile(count: int, word: str, tone: str) -> Html:
    return tag("li", tag("strong", f"{count:,}"), " ", word, cls=f"tile {tone if count else 'calm'}")


# ---- the approval ----


def _approval(plan: Plan, question: Question | None) -> Html | None:
    final = final_hold_line(plan)
    if question is None:
        return tag("p", final, cls="card warn") if final else None
    title = tag("h2", _approval_title(plan, question))
    covered = together(
        tag("summary", "the digests that an approval covers"), tag("div", lines(question.digests), cls="replicas")
    )
    body = tag(
        "section",
        *_question_lines(question),
        tag("details", covered),
        tag("p", final) if final else None,
        cls="card warn",
    )
    return together(title, body)


def _approval_title(plan: Plan, question: Question) -> str:
    if waiting := sum(gated.approvable for gated in plan.changes):
        return f"{waiting:,} {'change needs' if waiting == 1 else 'changes need'} an approval"
    return f"{plural(len(question.digests), 'change')} approved, each with its outcome below"


def _question_lines(question: Question) -> Iterator[Html]:
    if question.run_id is None:
        yield tag("p", "Nobody has been asked: a run in mode plan asks nothing, and the task ask comes after the gate.")
    else:
        api = f"../../../api/v2/dags/{_part(question.dag_id)}/dagRuns/{_part(question.run_id)}"
        page = f"../../../dags/{_part(question.dag_id)}/runs/{_part(question.run_id)}"
        link = tag("a", tag("code", f"{question.dag_id} {question.run_id}"), href=page, cls="airflow")
        yield tag("p", "Asked in ", link)
        # The script replaces this text, with the reader's own rights; without script or rights it stays.
        yield tag("p", "That run has the answer.", id="answer", data_api=api, role="status")
    if question.replaced_by:
        replaced = tag("code", question.replaced_by)
        yield tag("p", "A newer held set has replaced this one, so an approval sends nothing: ", replaced)


def _part(name: str) -> str:
    return quote(name, safe="")


# ---- changes ----


def _changes(title: str, model: PlanModel, plan: Plan, changes: Sequence[GatedChange]) -> Html | None:
    if not changes:
        return None
    shown = changes[:CHANGES_SHOWN]
    rows = [_change_row(plan, gated, model.outcomes.get(gated.digest)) for gated in shown]
    more = _more(len(changes) - len(shown), "changes")
    return together(tag("h2", title), table(_CHANGES_HEAD, rows, cls="changes"), more)


def _change_row(plan: Plan, gated: GatedChange, outcome: Outcome | None) -> Iterator[Html]:
    change = gated.change
    yield together(
        tag("span", f"{SIGNS[change.action]} {change.action}", cls=f"action {change.action}"),
        tag("div", change.topic, cls="topic"),
        tag("div", origin(change.location, change.owner), cls="muted"),
    )
    yield together(*_what(plan, gated))
    why = risk_text(change).partition(", ")[2]
    final = f"cannot be undone: {why_final(change)}"
    yield together(
        pill(change.risk.value, _RISK_TONES[change.risk]),
        tag("div", why, cls="muted") if why else None,
        None if change.reversible else tag("div", final, cls="final"),
    )
    yield together(pill(gated.gate.value, _GATE_TONES[gated.gate]), lines(gated.reasons), _outcome(outcome))
    yield tag("code", gated.digest[:12], title=gated.digest, cls="digest")


def _what(plan: Plan, gated: GatedChange) -> Iterator[Html]:
    """What the change does; replica lists are folded, because a topic may have a thousand."""
    change = gated.change
    shown = list(effect_lines(change, most_rows=_ROWS_SHOWN))
    if isinstance(change, CreateTopic | ExpandTopic):
        first = next((at for at, line in enumerate(shown) if line.startswith("replicas:")), len(shown))
        yield lines(shown[:first])
        yield _replicas(change, shown[first:])
    else:
        yield lines(shown)
    if isinstance(change, DeleteTopic):
        yield tag("div", traffic_text(plan.change_set.activity.get(change.topic)))
    yield from (tag("div", f"note: {note}", cls="note") for note in change.notes)


def _replicas(change: CreateTopic | ExpandTopic, rows: Sequence[str]) -> Html:
    new = "new " if isinstance(change, ExpandTopic) else ""
    label = f"replicas of {len(change.assignment):,} {new}partitions"
    return tag("details", tag("summary", label), tag("div", lines(rows), cls="replicas"))


def _outcome(outcome: Outcome | None) -> Html | None:
    if outcome is None:
        return None
    message = tag("div", outcome.message) if outcome.message else None
    return tag("div", pill(outcome.status.value, _OUTCOME_TONES[outcome.status]), message, cls="outcome")


# ---- what is no change ----


def _blocked(plan: Plan) -> Html | None:
    blocked = plan.change_set.blocked
    if not blocked:
        return None
    rows = [_blocked_row(found) for found in blocked[:CHANGES_SHOWN]]
    more = _more(len(blocked) - len(rows), "topics")
    return together(tag("h2", "Blocked"), table(_BLOCKED_HEAD, rows, cls="changes"), more)


def _blocked_row(blocked: Blocked) -> Iterator[Html]:
    yield together(
        tag("div", blocked.topic, cls="topic"), tag("div", origin(blocked.location, blocked.owner), cls="muted")
    )
    yield lines(f"{code}: {reason}" for code, reason in zip(blocked.codes, blocked.reasons, strict=False))
    move = tag("details", tag("summary", "for Kafka's reassignment tool"), tag("code", blocked.reassignment))
    yield together(tag("div", blocked.way_out), move if blocked.reassignment else None)


def _also(plan: Plan) -> Html | None:
    found = other_lines(plan)
    shown = found[:CHANGES_SHOWN]
    if not found:
        return None
    return together(
        tag("h2", "Also"), tag("ul", *(tag("li", line) for line in shown)), _more(len(found) - len(shown), "lines")
    )


def _more(count: int, noun: str) -> Html | None:
    return tag("p", f"… and {count:,} more {noun}, all in the plan file", cls="muted") if count > 0 else None


# ---- owners and balance ----


def _owners(facts: Facts | None) -> Html | None:
    """Whose topics differ, those with most first; nothing when one owner has them all, whom the changes name."""
    found = owners_with_drift(facts) if facts else []
    if len(found) <= 1:
        return None
    rows = [[owner, domain, *(f"{counts.get(name, 0):,}" for name in DRIFT_CLASSES)] for owner, domain, counts in found]
    return together(tag("h2", OWNERS_TITLE), table(OWNERS_HEAD, rows))


def _balance(plan: Plan) -> Html | None:
    """Bars of one scale for all brokers, and of one for all racks: only like can be compared."""
    load = plan.change_set.load
    brokers = [(str(row.broker), row.rack or "", row.before, row.after) for row in load.brokers]
    racks = [(row.rack, f"{row.brokers} brokers", row.before, row.after) for row in load.racks]
    if not brokers:
        return None
    return together(
        tag("h2", "Balance, if all of it runs"),
        _bars(("broker", "rack"), brokers),
        _bars(("rack", "holds"), racks) if any(row.brokers > 1 for row in load.racks) else None,
    )


def _bars(head: tuple[str, str], loads: Sequence[tuple[str, str, Share, Share]]) -> Html:
    most_replicas = _most(count.replicas for row in loads for count in row[2:])
    most_leaders = _most(count.leaders for row in loads for count in row[2:])
    rows = [_bar_row(row, most_replicas, most_leaders) for row in loads[:LOADS_SHOWN]]
    shown = table([*head, "replicas", "leaders (first replicas)"], rows, cls="loads")
    return together(shown, _more(len(loads) - len(rows), "rows"))


def _bar_row(row: tuple[str, str, Share, Share], most_replicas: int, most_leaders: int) -> Iterator[Html | str]:
    who, where, before, after = row
    replicas, leaders = growth_texts(before, after)
    yield who
    yield where
    yield together(bar(before.replicas, after.replicas, of=most_replicas), tag("span", replicas))
    yield together(bar(before.leaders, after.leaders, of=most_leaders), tag("span", leaders))


def _most(counts: Iterable[int]) -> int:
    return max(counts, default=0)


def bar(before: int, after: int, *, of: int) -> Html:
    """What stays, and behind it what comes or goes; a full bar is ``of``. A picture of numbers that stand beside it."""
    stays, moves = _percent(min(before, after), of), _percent(abs(after - before), of)
    kind = "comes" if after > before else "goes"
    return tag(
        "svg",
        tag("rect", cls="stays", x="0", y="0", width=f"{stays:.2f}", height="10"),
        tag("rect", cls=kind, x=f"{stays:.2f}", y="0", width=f"{moves:.2f}", height="10"),
        cls="bar",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _percent(part: int, of: int) -> float:
    return 100.0 * part / of if of else 0.0
