"""The Plan tab: what a reviewer must know of a change, what an approval covers, what came of it, and the balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from topicops.model.plans.plan import GatedChange, Plan, RackLossRow, RackLossTable, Share
from topicops.model.printable import plural
from topicops.model.runs.results import NO_FAILURE, OutcomeStatus
from topicops.on_airflow.pages.parts import (
    BELOW,
    bar,
    drawn_bar,
    empty,
    muted,
    nothing,
    outside,
    page,
    percent,
    problem_box,
    quoted,
    run_link,
    tiles,
    with_query,
)
from topicops.on_airflow.pages.plan_rows import BLOCKED, TONES, blocked_row, change_row, diagnostic_row, state_of
from topicops.on_airflow.pages.reading import Answered, PlanModel, Question
from topicops.steps.reporting.markup import Html, lines, more, number, section, table, tag, together
from topicops.steps.reporting.plan_document import also_section, owners_section, with_file, without_file
from topicops.steps.reporting.plan_wording import (
    LOSSES_TITLE,
    drained_title,
    final_hold_line,
    final_line,
    growth_texts,
    is_grave,
    loss_remarks,
    some,
    summary_line,
    worst_losses,
)
from topicops.steps.reporting.run_report import reasons_of

CHANGES_SHOWN = 500
"""More would make the page slow; the plan file has all changes."""
LOADS_SHOWN = 60
"""Brokers, or racks."""
_LOSSES_HEAD = ("rack lost", "offline", "below min ISR", "leaders that move")
_CHANGES_HEAD = ("change", "what", "risk", "state")
_BLOCKED_HEAD = ("topic", "what its file asks for", "why not", "way out")
_DIAGNOSTICS_HEAD = ("place", "code", "what is wrong")
_NEXT: Mapping[OutcomeStatus, str] = {
    OutcomeStatus.UNKNOWN: "find out why the brokers give no clear answer",
    OutcomeStatus.FAILED: "remove this reason",
    OutcomeStatus.REFUSED: "see to this reason",
    OutcomeStatus.NOT_SENT: "see to this reason",
}
"""Next step for changes that are not in place, before a new run plans again."""


def plan_page(model: PlanModel, state: str = "", *, moving: Sequence[Html | None] = ()) -> str:
    """Give the whole document; with a state, the word of the gate or what came of it, with these changes alone.

    ``moving`` is what moves because of the run.
    """
    run, goes_on = model.run, None
    if run.environment:  # the script says here which task runs, while the run goes on, and reads the page again
        api = _api(run.dag_id, run.run_id)
        goes_on = tag("p", "", id="goes-on", cls="muted", role="status", data_api=api)
    title = f"Plan of {run.environment}" if run.environment else "Plan"
    head = [tag("header", tag("h1", title)), goes_on, *map(problem_box, model.problems)]
    if run.carries_moves_on:
        parts: list[Html | None] = [] if any(moving) else [empty("Nothing moves, and nothing is owed.")]
    else:
        parts = [_no_plan(model)] if model.plan is None else _parts(model, model.plan, state)
    return page(f"Plan of {run.run_id}", *head, *moving, *parts, _about(model))


def _api(dag_id: str, run_id: str) -> str:
    return f"{BELOW}api/v2/dags/{quoted(dag_id)}/dagRuns/{quoted(run_id)}"


def _no_plan(model: PlanModel) -> Html:
    """Show what the task validate found, or why there is nothing to see."""
    if not model.diagnostics:
        why = "This run has made no plan yet, or it will make none: the states of its tasks say which."
        return nothing(model.run, model.quiet or why)
    shown = model.diagnostics[:CHANGES_SHOWN]
    errors = sum(found.severity.value == "error" for found in model.diagnostics)
    return together(
        tag("p", f"The files have {plural(errors, 'error')}, so this run made no plan.", cls="verdict"),
        table(_DIAGNOSTICS_HEAD, (diagnostic_row(found, model.commit_address) for found in shown), cls="diagnostics"),
        more(len(model.diagnostics) - len(shown), "problems"),
    )


def _parts(model: PlanModel, plan: Plan, state: str) -> list[Html | None]:
    found = [gated for gated in plan.changes if state in ("", state_of(model, gated))]
    wrong = [gated for gated in found if _went_wrong(model, gated)]
    rest = [gated for gated in found if not _went_wrong(model, gated)]
    asked, drained = with_file(rest), without_file(rest)
    grave = sorted((g for g in asked if is_grave(g)), key=lambda gated: -gated.change.risk.rank)
    others = [gated for gated in asked if not is_grave(gated)]
    count = f"{len(found):,} of {plural(len(plan.changes), 'change')} shown"
    parts = [
        _summary(model, plan, state),
        _approval(model, plan, model.question),
        tag("p", count, cls="muted", role="status") if state else None,
        *_wrong(model, plan, wrong),
        _changes("Look at these first", model, plan, grave),
        _changes("Other changes" if grave or wrong else "Changes", model, plan, others),
        _changes(drained_title(gated.change for gated in drained), model, plan, drained),
        _blocked(plan) if state in ("", BLOCKED) else None,
    ]
    if not state:
        owners = owners_section(model.facts)
        owners = replace(owners, title=f"{owners.title}, as this run first read them")
        parts += [section(owners, most=CHANGES_SHOWN), _losses(plan), _balance(plan)]
        parts.append(section(also_section(plan), most=CHANGES_SHOWN))
    return parts


def _summary(model: PlanModel, plan: Plan, state: str) -> Html:
    """Give the verdict, and a tile for each state."""
    counts = Counter(state_of(model, gated) for gated in plan.changes)
    counts[BLOCKED] = len(plan.change_set.blocked)
    final = "" if _is_decided(model) else final_line(plan)
    return together(
        tag("p", _verdict(model, plan, counts), cls="verdict"),
        tiles(counts, TONES, state, lambda word: with_query("plan", {"run_id": model.run.run_id, "state": word})),
        tag("p", final, cls="card bad") if final else None,
    )


def _verdict(model: PlanModel, plan: Plan, counts: Counter[str]) -> str:
    """Say what the run will do; once a person answered or something was sent, what came of it."""
    if not _is_decided(model):
        return summary_line(plan)
    said = ", ".join(f"{counts[word]:,} {word}" for word in TONES if counts[word] and word != BLOCKED)
    blocked = f"; {plural(counts[BLOCKED], 'topic')} blocked" if counts[BLOCKED] else ""
    return f"Of {plural(len(plan.changes), 'change')}: {said}{blocked}."


def _is_decided(model: PlanModel) -> bool:
    return bool(model.outcomes) or (model.question is not None and model.question.answer is not None)


def _approval(model: PlanModel, plan: Plan, question: Question | None) -> Html | None:
    final = final_hold_line(plan)
    if question is None:
        return tag("p", final, cls="card warn") if final else None
    said = [*_question_lines(model, question)]
    summary = tag("summary", "the digests that an approval covers")
    digests = tag("details", summary, tag("div", lines(question.digests), cls="replicas"))
    body = tag("section", *said, digests, tag("p", final) if final else None, cls="card warn")
    return together(tag("h2", _approval_title(plan, question)), body)


def _approval_title(plan: Plan, question: Question) -> str:
    if question.answer:
        approved, rejected = len(question.answer.approved), len(question.answer.rejected)
        said = [f"{count:,} {word}" for count, word in ((approved, "approved"), (rejected, "rejected")) if count]
        return f"Approval: {', '.join(said) or 'the answer decided nothing'}"
    if waiting := sum(gated.approvable for gated in plan.changes):
        return f"{waiting:,} {'change needs' if waiting == 1 else 'changes need'} an approval"
    return f"{plural(len(question.digests), 'change')} approved, each with its outcome below"


def _question_lines(model: PlanModel, question: Question) -> Iterator[Html]:
    if question.run_id is None and question.digests and set(question.digests) <= model.rejections.keys():
        yield tag("p", "Nobody is asked: all that needs an approval was rejected before, and rests until it changes.")
    elif question.run_id is None:
        yield tag(
            "p",
            "Nobody has been asked so far. In mode apply the task ask does it after the gate; mode plan asks nobody.",
        )
    else:
        label = tag("code", f"{question.dag_id} {question.run_id}")
        yield tag("p", "Asked in ", run_link(f"{question.dag_id}/{question.run_id}", BELOW, label))
        if question.answer:
            yield tag("p", _answer_line(question.answer), id="recorded")
        else:
            # The script replaces this text, with the reader's own rights; without script or rights it stays.
            api = _api(question.dag_id, question.run_id)
            yield tag("p", "That run has the answer.", id="answer", data_api=api, role="status")
    if question.replaced_by:
        replaced = tag("code", question.replaced_by)
        yield tag("p", "A newer held set has replaced this one, so an approval sends nothing: ", replaced)


def _answer_line(answer: Answered) -> str:
    said = f": {answer.comment}" if answer.comment else ""
    why = f" It approved nothing: {answer.objection}." if answer.objection else ""
    return f"Answered by {answer.by}, {answer.at:%Y-%m-%d %H:%M:%S} UTC{said}{'' if said.endswith('.') else '.'}{why}"


def _changes(title: str, model: PlanModel, plan: Plan, changes: Sequence[GatedChange]) -> Html | None:
    if not changes:
        return None
    shown = changes[:CHANGES_SHOWN]
    rows = (change_row(model, plan, gated) for gated in shown)
    left_out = more(len(changes) - len(shown), "changes")
    return together(tag("h2", title), table(_CHANGES_HEAD, rows, cls="changes"), left_out)


def _went_wrong(model: PlanModel, gated: GatedChange) -> bool:
    """Say whether something is left to do: not where it was approved, and no file asks for it any more."""
    outcome = model.outcomes.get(gated.digest)
    if outcome is None or outcome.status in NO_FAILURE:
        return False
    was_asked = model.question is not None and gated.digest in model.question.digests
    return not (was_asked and outcome.is_unasked)


def _wrong(model: PlanModel, plan: Plan, wrong: Sequence[GatedChange]) -> Iterator[Html | None]:
    """Yield a card for each reason, with its topics and what to do next, and then the changes, in the same order."""
    reasons = reasons_of(model.outcomes[gated.digest] for gated in wrong)
    if not reasons:
        return
    yield tag("h2", "What went wrong")
    for reason in reasons:
        topics = some(f"{outcome.action} {outcome.topic}" for outcome in reason.outcomes)
        said = f"Next: {_NEXT[reason.status]}, then trigger topic_pipeline_{model.run.environment}."
        yield tag("section", tag("p", tag("strong", str(reason))), tag("p", topics), tag("p", said), cls="card bad")
    by_digest = {gated.digest: gated for gated in wrong}
    ordered = [by_digest[outcome.digest] for reason in reasons for outcome in reason.outcomes]
    yield _changes("Each of them", model, plan, ordered)


def _blocked(plan: Plan) -> Html | None:
    blocked = plan.change_set.blocked
    if not blocked:
        return None
    rows = map(blocked_row, blocked[:CHANGES_SHOWN])
    left_out = more(len(blocked) - CHANGES_SHOWN, "topics")
    return together(tag("h2", "Blocked"), table(_BLOCKED_HEAD, rows, cls="changes blocked"), left_out)


def _about(model: PlanModel) -> Html:
    """Name the run and the plan, for whoever compares them; at the end, because few people do."""
    plan = model.plan
    commit = (plan.change_set.source.commit or "") if plan else model.commit
    shown = outside(tag("code", commit), model.commit_address) if commit else "not known"
    facts: list[tuple[str, Html | str]] = [("run", tag("code", f"{model.run.dag_id} {model.run.run_id}"))]
    if plan:
        facts.append(("cluster", f"{plan.target.cluster_id}, chroot {plan.target.chroot or '/'}"))
        facts.append(("files", f"{plural(plan.change_set.source.topics, 'topic')} described"))
    if plan or commit:
        facts.append(("commit", shown))
    if plan:
        facts.append(("fingerprint", tag("code", plan.fingerprint, cls="digest")))
    rows = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    return tag("footer", tag("h2", "About this plan" if plan else "About this run"), tag("dl", *rows))


def _losses(plan: Plan) -> Html | None:
    """Show a row of bars for each rack; nothing where nothing changes, or the states are not known."""
    found = plan.change_set.rack_losses
    if found is None or not plan.changes:
        return None
    shown = worst_losses(found, LOADS_SHOWN)
    rows = table(_LOSSES_HEAD, (_loss_cells(found, row) for row in shown), cls="losses") if shown else None
    left_out = more(len(found.racks) - len(shown), "racks, none of which costs more")
    return together(tag("h2", LOSSES_TITLE), rows, left_out, *map(muted, loss_remarks(found)))


def _loss_cells(found: RackLossTable, row: RackLossRow) -> Iterator[Html | str]:
    """Yield partitions that are offline or below their minimum on one scale; leaders, which only move, on their own."""
    hurt = max(count for other in found.racks for count in (other.after.offline, other.after.below_min_isr))
    moved = max(other.after.moved_leaders for other in found.racks)
    yield together(tag("span", row.rack), tag("div", plural(row.brokers, "broker"), cls="muted"))
    yield _loss_cell(row.before.offline, row.after.offline, of=hurt, tone="bad")
    yield _loss_cell(row.before.below_min_isr, row.after.below_min_isr, of=hurt, tone="warn")
    yield _loss_cell(row.before.moved_leaders, row.after.moved_leaders, of=moved, tone="calm")


def _loss_cell(before: int, after: int, *, of: int, tone: str) -> Html:
    """Show a picture of the number beside it, and the number of before where it is another."""
    picture = drawn_bar((tone, 0.0, percent(after, of)), cls="bar loss")
    was = tag("span", f" (before {before:,})", cls="muted") if before != after else None
    return together(picture, number(after), was)


def _balance(plan: Plan) -> Html | None:
    """Show bars of one scale for all brokers, and of one for all racks: only like can be compared."""
    load = plan.change_set.load
    brokers = [(str(row.broker), row.rack or "", row.before, row.after) for row in load.brokers]
    racks = [(row.rack, plural(row.brokers, "broker"), row.before, row.after) for row in load.racks]
    if not brokers:
        return None
    return together(
        tag("h2", "Balance, if all of it runs"),
        _bars(("broker", "rack"), brokers),
        _bars(("rack", "holds"), racks) if any(row.brokers > 1 for row in load.racks) else None,
    )


def _bars(head: tuple[str, str], loads: Sequence[tuple[str, str, Share, Share]]) -> Html:
    most_replicas, most_leaders = (
        max(getattr(share, field) for row in loads for share in row[2:]) for field in ("replicas", "leaders")
    )
    rows: list[list[Html | str]] = []
    for who, where, before, after in loads[:LOADS_SHOWN]:
        replicas, leaders = growth_texts(before, after)
        of_replicas = together(bar(before.replicas, after.replicas, of=most_replicas), tag("span", replicas))
        of_leaders = together(bar(before.leaders, after.leaders, of=most_leaders), tag("span", leaders))
        rows.append([who, where, of_replicas, of_leaders])
    shown = table([*head, "replicas", "leaders (first replicas)"], rows, cls="loads")
    return together(shown, more(len(loads) - len(rows), "rows"))
