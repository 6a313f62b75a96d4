"""The tasks up to the plan and the gate, of the pipeline and of the drift check: each takes one step of the flow."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import msgspec
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from topicops.flow.reporting import run_report
from topicops.flow.runs.memory import (
    keep_held,
    note_begin,
    note_newest_good,
    note_plan,
    read_held,
    read_rejections,
    resting_lines,
)
from topicops.flow.runs.run import DRIFT_FILE, EnvironmentRun, note
from topicops.flow.verifying import verify_left
from topicops.model.errors import UsageError
from topicops.model.plans.changes import ACTIONS, Action, GateWord
from topicops.model.plans.plan import Approval, GatedChange, Plan, may_run
from topicops.model.printable import bold, markdown
from topicops.model.runs.memories import HeldSet, LatestPlan
from topicops.model.runs.results import (
    MOST_DIGESTS,
    RESULT_KEY,
    FailingRow,
    QualityReport,
    QualityResult,
    RunResult,
    quality_file,
)
from topicops.on_airflow.airflow_inside import count
from topicops.on_airflow.names import place_of
from topicops.on_airflow.plugged import Tools, after_reading
from topicops.on_airflow.plugged_at_start import TELLERS
from topicops.on_airflow.site import QUIET, SKIP, Site, duration_of
from topicops.on_airflow.tasks.opening import (
    XComValue,
    approvals_of_params,
    is_whole,
    keep_commit_address,
    mode_of,
    only_of,
    opened,
    refuse_overtaken,
    refuse_unknown_params,
    triggered_by,
)
from topicops.plugged import after_task
from topicops.steps.planning.diff import counted, drift_summary
from topicops.steps.planning.only import no_match
from topicops.steps.reporting.run_result import run_result

log = logging.getLogger(__name__)

MOST_NAMED = 50
"""Blocked topics and skipped changes in an XCom."""


def validate(site: Site, context: Context) -> XComValue:
    """Write the desired topics; a run that is pinned to a commit first waits until the folder of files is at it."""
    with opened(site, context) as (tools, run):
        refuse_unknown_params(context)
        note_begin(run)
        keep_commit_address(run, context["ti"], site.topics)
        if context["params"].get("mode") == "apply":
            refuse_overtaken(run, context)
        patience_s = duration_of("TOPICOPS_COMMIT_WITHIN", "10m").total_seconds()
        return tools.flow.validate(run, as_tables=True, patience_s=patience_s)


def snapshot(site: Site, context: Context) -> XComValue:
    """Read the live cluster. Where nothing differs from the last good run, the run ends here."""
    with opened(site, context) as (tools, run):
        summary = tools.flow.snapshot(run, states=True)
        left = verify_left(run)
        note(run, left)
        for sentence in left:
            log.warning("%s", sentence)
        mode = mode_of(context) if is_whole(context) else "drift"
        full = full_because(context) or next(iter(left), "")
        looks = (cut.look_for_quiet(run, mode=mode, full_because=full) for cut in tools.short_cuts)
        quiet = next(filter(None, looks), None)
        if quiet is None:
            if mode != "drift":
                tools.engine_of(run).start_early(run)
            return summary
        after_reading(run)
        if mode != "drift":
            note_newest_good(run, place_of(site.topics))
        if mode == "apply":
            note_plan_of(run, context)
        result = run_result(run_report(run), headline=quiet.sentence)
        hand_over(replace(result, commit=quiet.commit), context)
        return {**summary, QUIET: quiet.sentence}


def full_because(context: Context) -> str:
    """Say why a full run is wanted; empty means that it is not."""
    if context["dag_run"].clear_number:
        return "it was cleared"
    given = [name for name in ("approved", "reviews", "commit", "only") if context["params"].get(name)]
    return f"its params ask for something of their own: {', '.join(given)}" if given else ""


def note_plan_of(run: EnvironmentRun, context: Context) -> None:
    """Note the plan, so that no older run that is cleared may send anything from now on."""
    note_plan(run.home, run.environment, LatestPlan(run=run.name, run_after=context["dag_run"].run_after))


def hand_over(result: RunResult, context: Context) -> None:
    """Push the result as plain JSON, which CI reads through the REST API; Airflow would wrap a tuple."""
    context["ti"].xcom_push(key=RESULT_KEY, value=msgspec.json.decode(msgspec.json.encode(result)))


def quality_before(site: Site, context: Context) -> XComValue:
    """Ask whether the inputs may be trusted, and compare: to start Spark again for ``diff`` costs more than both."""
    with opened(site, context) as (tools, run), ExitStack() as stack:
        shown, engine = XComValue(), tools.engine_of(run)
        for quality in tools.quality:
            stack.enter_context(quality.beside(run, engine))
            shown = show_quality(quality.before(run, engine), run, context)
        tools.flow.diff(run, engine=engine)
        return shown


def diff(site: Site, context: Context) -> XComValue:
    with opened(site, context) as (tools, run):
        return tools.flow.diff_once(run, engine=tools.engine_of(run))


def plan(site: Site, context: Context) -> XComValue:
    with opened(site, context) as (tools, run):
        return _planned(tools, run, context)


def _planned(tools: Tools, run: EnvironmentRun, context: Context) -> XComValue:
    """Plan. Raises ``UsageError`` where ``only`` matches no topic: a plan of nothing would look like good news."""
    only = only_of(context)
    planned = tools.flow.plan(run, only=only)
    if only and (problem := no_match(only, sorted({*run.read_desired().topics, *run.read_live().topics}))):
        raise UsageError(f"{problem} Start a new run")
    return planned


def gate(site: Site, context: Context) -> XComValue:
    """Sort the changes; in mode apply, keep the newest held set. Tasks that are not needed are skipped by name."""
    with opened(site, context) as (tools, run):
        is_apply = mode_of(context) == "apply"
        if is_apply:
            refuse_overtaken(run, context)
        if context["params"].get("approved"):
            tools.flow.gate(run)  # the key of an approval is of the plan that this writes
        approvals, objections = approvals_of_params(run, context)
        summary = tools.flow.gate(run, approvals=approvals)
        note(run, objections)  # the gate has removed the notes of an earlier try
        keep_commit_address(run, context["ti"], site.topics)
        after_reading(run)
        found = run.read_plan()
        log_changes(found)
        asked = _keep_held_set(run, found, context) if is_apply else {}
        judged_by = next(filter(None, (cut.judged_by(run) for cut in tools.short_cuts)), "")
        skipped = unneeded_steps(
            found, approvals if is_apply else None, asks=asked.get("question") is not None, judged_by=judged_by
        )
        return {**summary, **not_to_run(found), **asked, SKIP: skipped}


def _keep_held_set(run: EnvironmentRun, found: Plan, context: Context) -> XComValue:
    """Keep what an approval could let run, and give what ``ask`` asks about."""
    note_plan_of(run, context)
    addresses = {
        gated.digest: f"{gated.change.action} {gated.change.address}"
        for gated in found.with_gate(GateWord.HELD)
        if gated.approvable
    }
    held = HeldSet(addresses=addresses, found_by=run.name, author=triggered_by(context))
    only, before = only_of(context), read_held(run.home, run.environment)
    unseen = before.without_topics(only).addresses if only else {}
    newest = replace(held, addresses={**unseen, **held.addresses}).after(before)
    keep_held(run.home, run.environment, newest)
    rejections = read_rejections(run.home, run.environment)
    resting = [*resting_lines(rejections, held.addresses)]
    note(run, resting)
    if resting:
        log.info("%s", "\n".join(resting))
    return {**asked_about(held, newest, rejected=rejections), "rests": len(resting)}


def asked_about(held: HeldSet, newest: HeldSet, *, rejected: Collection[str] = ()) -> XComValue:
    """Give what ``ask`` starts the approval run with: the digests, or only the set's own where these are too many.

    A set of changes that somebody rejected, every one, is not asked about.
    """
    if set(held.addresses) <= set(rejected):
        return {"question": None, "digests": [], "held_set": "", "asked": 0}
    if digests := listed(held.digests):
        return {"question": held.digest, "digests": digests, "held_set": "", "asked": len(digests)}
    return {"question": newest.digest, "digests": [], "held_set": newest.digest, "asked": len(newest.addresses)}


def listed(digests: Sequence[str]) -> list[str]:
    """Give the digests if XCom can hold them; too many are left out as a whole."""
    return list(digests) if len(digests) <= MOST_DIGESTS else []


def unneeded_steps(
    found: Plan, approvals: Sequence[Approval] | None, *, asks: bool, judged_by: str = ""
) -> Mapping[str, str]:
    """Say why these steps after the gate are not needed, by task id.

    Args:
        approvals: Approvals as the steps that send changes take them; None means that the mode is plan.
        asks: Whether an approval could let something run.
        judged_by: The run after whose changes the rules held in this very state; empty: none, or too long ago.
    """
    kinds = {g.change.action for g in found.changes if approvals is not None and may_run(g, approvals)}
    nothing = "mode is plan: nothing is sent" if approvals is None else "nothing is to be sent"
    skipped: dict[str, str] = {
        kind: nothing if approvals is None else f"nothing to {kind}" for kind in ACTIONS if kind not in kinds
    }
    if not kinds:
        skipped |= {"verify": nothing, "announce": nothing}
    if not kinds and judged_by:
        skipped["quality_after"] = f"{nothing}, and the rules held in this very state: run {judged_by}"
    if not asks:
        skipped["ask"] = "nothing is held that an approval could let run"
    return skipped


def kinds_of(found: Plan) -> frozenset[Action]:
    return frozenset(gated.change.action for gated in found.changes)


def plan_to_look_at(site: Site, context: Context) -> XComValue:
    """Plan and gate. Asks nobody, and leaves the held set as it is."""
    with opened(site, context) as (tools, run):
        planned = _planned(tools, run, context)
        gated = tools.flow.gate(run)
        after_reading(run)
        log_changes(run.read_plan())
        return {**planned, **gated}


def drift(site: Site, context: Context) -> XComValue:
    """Log a line for each difference between cluster and files. A difference fails nothing."""
    with opened(site, context) as (tools, run):
        is_all = only_of(context) is None
        found = tools.flow.record_drift(run, only=only_of(context))
        after_task(run, mode="drift")
        if is_all:
            after_reading(run)
        differences = len(found.drift)
        note_end(tools, run, failed_tasks=("drift",) if differences else ())
        for teller in TELLERS:
            teller.tell_of_drift(run, site.options.notifiers, context, is_whole=is_all)
        count(run.environment, {"drift": differences})
        path = str(run.store.path(DRIFT_FILE))
        return {**counted(found.drift), "path": path, "summary": drift_summary(found), "differences": differences}


def note_end(tools: Tools, run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> None:
    """Let the next run end early if this one was good, and no run if it was not."""
    for cut in tools.short_cuts:
        cut.note_end(run, failed_tasks=failed_tasks)


def log_changes(found: Plan) -> None:
    """Log a line for each change, with the gate's word and its reasons, and for each blocked topic.

    All lines of a kind are one record of the log. To each record Airflow adds a time and a place, which are longer than
    a line. Where the API server is slow, a worker passes on only 4 KiB of the log between two heartbeats.
    """
    if found.changes:
        log.info("%s", "\n".join(map(_gate_line, found.changes)))
    if blocked := found.change_set.blocked:
        lines = (f"blocked {each.topic} ({'; '.join(each.reasons)}): {each.way_out}" for each in blocked)
        log.warning("%s", "\n".join(lines))


def _gate_line(gated: GatedChange) -> str:
    reasons = f" ({'; '.join(gated.reasons)})" if gated.reasons else ""
    return f"{gated.gate.value} {gated.change.action} {gated.change.topic}{reasons}"


def not_to_run(found: Plan) -> XComValue:
    """Give the topics that are blocked and the changes that are skipped, the first of them, with codes or reasons."""
    skipped = found.with_gate(GateWord.SKIPPED)[:MOST_NAMED]
    return {
        "blocked_topics": {each.topic: ", ".join(each.codes) for each in found.change_set.blocked[:MOST_NAMED]},
        "skipped_changes": {f"{g.change.action} {g.change.topic}": "; ".join(g.reasons) for g in skipped},
    }


# ---- quality rules ----


def show_quality(found: QualityReport, run: EnvironmentRun, context: Context) -> XComValue:
    """Log what fails, and leave the table of all rules in XCom ``quality``; fails on a critical rule."""
    for result in found.failed:
        log.warning("FAILED %s (%s): %s", result.rule, result.severity, result.title)
    log.info("%s of %s rules hold", len(found.results) - len(found.failed), len(found.results))
    table = quality_markdown(found)
    if found.failed:
        log.info("\n%s", table)
    context["ti"].xcom_push(key="quality", value=table)
    if found.critical:
        raise AirflowFailException(f"critical quality rules failed: {', '.join(found.critical)}")
    return {
        "path": str(run.store.path(quality_file(found.suite))),
        "rules": len(found.results),
        "failed": [result.rule for result in found.failed],
        "critical": list(found.critical),
    }


def quality_markdown(report: QualityReport) -> str:
    """Give a table row for each rule; below it, for each rule that fails, its rows, and where to read what to do."""
    lines = ["| rule | what must hold | severity | result | rows |", "| --- | --- | --- | --- | --- |"]
    for result in report.results:
        verdict = "passed" if result.success else "**failed**"
        rows = str(result.rows_checked) if result.success else f"{result.rows_failed} of {result.rows_checked}"
        cells = [markdown(result.rule), markdown(result.title), markdown(result.severity), verdict, rows]
        lines.append(f"| {' | '.join(cells)} |")
    for result in report.failed:
        lines += ["", *_failure(result)]
    return "\n".join(lines) + "\n"


def _failure(result: QualityResult) -> Iterator[str]:
    shown, history = len(result.examples), ""
    if result.is_pre_existing:
        history = "; it was so before the changes"
    elif result.rows_failed_before is not None:
        history = f"; {result.rows_failed - result.rows_failed_before} of them new since the changes"
    rows = f"{shown} of {result.rows_failed} rows" if shown < result.rows_failed else "the rows that break it"
    yield f"{bold(result.rule)}: {rows}{history}"
    yield ""
    yield from (f"- {_named(example)}" for example in result.examples)
    if result.runbook:
        yield f"- What to do: {markdown(result.runbook)}"


def _named(example: FailingRow) -> str:
    words = ", ".join(f"{markdown(name)}={markdown(str(value))}" for name, value in example.row.items())
    return f"{words} (so before)" if example.was_so_before else words
