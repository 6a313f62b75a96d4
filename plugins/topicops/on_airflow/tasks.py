"""What each task does: open the run's folder, take one step, return paths, digests and counts.

The steps themselves are in ``topicops.flow``, which is imported when a task runs and not when a DAG file is parsed.
"""

from __future__ import annotations

import fnmatch
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from topicops.model.errors import (
    ConnectionSecurityError,
    FormatVersionError,
    MovedFilesError,
    SpecError,
    TopicopsError,
    UsageError,
    WrongTargetError,
)
from topicops.model.plans.changes import Action, GateWord
from topicops.model.printable import plural, printable
from topicops.model.runs.results import IN_PLACE, MOST_DIGESTS, quality_file
from topicops.model.waits import told_waits
from topicops.on_airflow.artifact_copies import copy_artifacts
from topicops.on_airflow.assets import announce_topics
from topicops.on_airflow.branches import QUIET, SKIP, unneeded_steps
from topicops.on_airflow.dag_ids import place_of
from topicops.on_airflow.one_home import keep_to_one_home
from topicops.on_airflow.options import Options
from topicops.on_airflow.params import (
    approvals_by_parameter,
    approvals_by_review,
    commit_within,
    mode_of,
    mode_or,
    only_of,
    pinned_commit,
    refuse_unknown_params,
    triggered_by,
)
from topicops.on_airflow.stopping import stop_asked

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from topicops.flow.engines import DiffEngine
    from topicops.flow.runs.run import EnvironmentRun, Run, Summary
    from topicops.flow.single_steps import ApplySummary, DriftSummary, ReportSummary
    from topicops.model.plans.plan import Approval, Plan
    from topicops.model.ports import ConnectionSource
    from topicops.model.runs.memories import HeldSet
    from topicops.model.runs.results import QualityReport, RunResult
    from topicops.on_airflow.plugged import Quality, ShortCut
    from topicops.steps.reporting.run_report import RunReport

log = logging.getLogger(__name__)

XComValue = dict[str, object]
"""What a task returns: paths, digests and counts."""

NO_RETRY = (ConnectionSecurityError, FormatVersionError, MovedFilesError, SpecError, UsageError, WrongTargetError)
"""Errors that a second try cannot fix."""
LEASE_PATIENCE_S = 1800.0
"""How long a task waits for another's lease; below the tasks' own time limit."""
MOST_NAMED = 50
"""Blocked topics and skipped changes in an XCom."""
FAILED_STATES = ("failed", "upstream_failed")


class Flow(Protocol):
    """The functions of ``flow.single_steps`` that the tasks use: tests hand in others."""

    def open_run(
        self,
        *,
        environment: str,
        topics: Path,
        group: str,
        run_id: str,
        connections: ConnectionSource,
        progress: Callable[[str], None],
        version: str | None,
        pinned: str | None,
    ) -> Run: ...
    def validate(self, run: Run, *, as_tables: bool = False, patience_s: float = 0.0) -> Summary: ...
    def snapshot(self, run: Run, *, states: bool) -> Summary: ...
    def diff(self, run: Run, *, engine: DiffEngine) -> Summary: ...
    def diff_once(self, run: Run, *, engine: DiffEngine) -> Summary: ...
    def plan(self, run: Run, *, only: str | None) -> Summary: ...
    def plan_held(self, run: Run, digests: Collection[str]) -> Summary: ...
    def gate(self, run: Run, *, approvals: Sequence[Approval] = ()) -> Summary: ...
    def record_drift(self, run: Run, *, only: str | None) -> DriftSummary: ...
    def apply(
        self,
        run: Run,
        *,
        actions: Collection[Action],
        approvals: Sequence[Approval],
        lock_timeout_s: float,
        attempt: int,
        started_by: str,
        interrupted: Callable[[], bool],
    ) -> ApplySummary: ...
    def verify(self, run: Run) -> Summary: ...
    def report(self, run: Run, *, failed_tasks: Sequence[str]) -> ReportSummary: ...
    def note_verified(self, run: Run, *, failed_tasks: Sequence[str]) -> None: ...


def installed_flow() -> Flow:
    from topicops.flow import single_steps

    return single_steps


def plugged_short_cuts() -> Sequence[ShortCut]:
    from topicops.on_airflow.plugged import SHORT_CUTS

    return SHORT_CUTS


def installed_quality() -> Sequence[Quality]:
    from topicops.on_airflow.plugged import QUALITY

    return QUALITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The environment and folders that its DAGs share."""

    environment: str
    topics: Path
    flow: Callable[[], Flow] = installed_flow
    short_cuts: Callable[[], Sequence[ShortCut]] = plugged_short_cuts
    quality: Callable[[], Sequence[Quality]] = installed_quality
    options: Options = field(default_factory=Options)

    @property
    def pipeline_id(self) -> str:
        return f"topic_pipeline_{self.environment}"

    @property
    def drift_id(self) -> str:
        return f"topic_drift_{self.environment}"

    @property
    def approval_id(self) -> str:
        return f"topic_approval_{self.environment}"


class RefusedError(AirflowFailException):
    """Changes were refused, and nothing worse happened."""


@contextmanager
def step(site: Site, context: Context) -> Iterator[tuple[Flow, Run]]:
    """The steps and this run's folder; an error becomes an Airflow failure, with retries where they can help."""
    from topicops.on_airflow.connections import from_airflow, mask_settings

    flow = site.flow()
    ti = context["ti"]
    try:
        mask_settings()
        run = flow.open_run(
            environment=site.environment,
            topics=site.topics,
            group=ti.dag_id,
            run_id=ti.run_id,
            connections=from_airflow,
            progress=log.info,
            version=bundle_version(ti, site.topics),
            pinned=pinned_commit(context),
        )
        keep_to_one_home(run, ti)
        with told_waits(log.info), noted_problem(run, ti.task_id):
            yield flow, run
    except NO_RETRY as error:
        from topicops.flow.runs.files import diagnostics_named

        found = diagnostics_named(site.topics, error.diagnostics) if isinstance(error, SpecError) else ()
        for diagnostic in found:
            log.warning("%s:%d: %s %s", diagnostic.file, diagnostic.line, diagnostic.code, diagnostic.summary)
        raise AirflowFailException(str(error)) from error
    except TopicopsError as error:
        raise AirflowException(str(error)) from error


@contextmanager
def noted_problem(run: Run, task_id: str) -> Iterator[None]:
    """The report, the note and the message of the run say why the task failed."""
    from topicops.flow.reporting import note_problem

    try:
        yield
    except TopicopsError as error:
        if not isinstance(error, SpecError):  # its problems are in the run's folder, each with its place
            note_problem(run, task_id, str(error))
        raise


def plan_address(ti: RuntimeTaskInstanceProtocol) -> str:
    """Where the plan of this run is shown; absolute where Airflow knows its own address."""
    from topicops.on_airflow.links import tab_address
    from topicops.on_airflow.routes import PLAN_ROUTE

    return tab_address(ti.dag_id, ti.run_id, PLAN_ROUTE)


def commit_address(ti: RuntimeTaskInstanceProtocol, topics: Path) -> str:
    """Where the forge shows the commit of the bundle that holds the topics; empty: not known."""
    version = bundle_version(ti, topics)
    view_url = getattr(getattr(ti, "bundle_instance", None), "view_url", None)
    address = str(view_url(version) or "") if version and view_url else ""
    return address if address.startswith(("https://", "http://")) else ""


def keep_commit_address(run: Run, address: str) -> None:
    """For the run's page, which knows no bundle."""
    from topicops.flow.runs.run import COMMIT_ADDRESS

    if address:
        run.store.write_text(COMMIT_ADDRESS, address)


def bundle_version(ti: RuntimeTaskInstanceProtocol, topics: Path) -> str | None:
    """The commit of the DAG bundle that holds the topics.

    None: the bundle knows no versions, or the topics are elsewhere.
    """
    bundle = getattr(ti, "bundle_instance", None)
    root = getattr(bundle, "repo_path", None) or getattr(bundle, "path", None)
    is_inside = root is not None and topics.resolve().is_relative_to(Path(root).resolve())
    return getattr(bundle, "version", None) if is_inside else None


@contextmanager
def logged_once() -> Iterator[None]:
    """Log each change once: the run's progress lines stay, the same lines of the steps' own logger are dropped.

    Only in this thread; tasks in other threads log as before.
    """
    logger, thread = logging.getLogger("topicops.steps.applying.ledger"), threading.get_ident()

    def is_news(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.thread != thread

    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


def validate(site: Site, context: Context) -> XComValue:
    """Write the desired topics, or log every problem of every file and fail.

    A run that is pinned to a commit first waits until the folder of the files is at it.
    """
    from topicops.flow.runs.memory import note_begin

    with step(site, context) as (flow, run):
        refuse_unknown_params(context)
        note_begin(run)
        keep_commit_address(run, commit_address(context["ti"], site.topics))
        if context["params"].get("mode") == "apply":
            refuse_overtaken(run, context)
        return flow.validate(run, as_tables=True, patience_s=commit_within().total_seconds()).to_xcom()


def snapshot(site: Site, context: Context) -> XComValue:
    """The live cluster with partition states. Where nothing differs from the last good run, the run ends here."""
    from topicops.flow.reporting import run_report
    from topicops.on_airflow.plugged import after_reading
    from topicops.steps.reporting.run_result import run_result

    with step(site, context) as (flow, run):
        summary = flow.snapshot(run, states=True).to_xcom()
        left, mode = verify_what_is_left(run), mode_or(context, "drift")
        full = full_because(context) or next(iter(left), "")
        looks = (cut.look_for_quiet(run, mode=mode, full_because=full) for cut in site.short_cuts())
        quiet = next(filter(None, looks), None)
        if quiet is None:
            return summary
        after_reading(run)
        if mode != "drift":
            note_newest_good(run, site.topics)
        if mode == "apply":
            note_plan_of(run, context)
        result = run_result(run_report(run), headline=quiet.sentence)
        hand_over(replace(result, commit=quiet.commit), context)
        return {**summary, QUIET: quiet.sentence}


def judged_by(site: Site, run: Run) -> str:
    """Give the run after whose changes the rules held in this very state; empty where none is known."""
    return next(filter(None, (cut.judged_by(run) for cut in site.short_cuts())), "")


def note_end(site: Site, run: Run, *, failed_tasks: Sequence[str] = ()) -> None:
    """Let the next run end early if this one was good, and no run if it was not."""
    for cut in site.short_cuts():
        cut.note_end(run, failed_tasks=failed_tasks)


def full_because(context: Context) -> str:
    """Why somebody wants a full run; empty: nobody does."""
    if context["dag_run"].clear_number:
        return "it was cleared"
    given = [name for name in ("approved", "reviews", "commit", "only") if context["params"].get(name)]
    return f"its params ask for something of their own: {', '.join(given)}" if given else ""


def note_plan_of(run: EnvironmentRun, context: Context) -> None:
    """No older run that is cleared may send anything from now on."""
    from topicops.flow.runs.memory import note_plan
    from topicops.model.runs.memories import LatestPlan

    note_plan(run.home, run.environment, LatestPlan(run=run.name, run_after=context["dag_run"].run_after))


def quality_before(site: Site, context: Context) -> XComValue:
    """May the inputs be trusted? A critical rule that fails stops the run here.

    Then Spark compares files and cluster too, for the task diff: to start Spark again costs more than both.
    """
    from topicops.on_airflow.plugged import TASK_ENGINE

    with step(site, context) as (flow, run), ExitStack() as stack:
        shown: XComValue = {}
        for quality in site.quality():
            stack.enter_context(quality.beside(run))
            shown = show_quality(quality.before(run), run, context)
        flow.diff(run, engine=TASK_ENGINE)
        return shown


def diff(site: Site, context: Context) -> XComValue:
    """The differences between files and cluster, which Spark has found in the task quality_before."""
    from topicops.on_airflow.plugged import TASK_ENGINE

    with step(site, context) as (flow, run):
        return flow.diff_once(run, engine=TASK_ENGINE).to_xcom()


def plan(site: Site, context: Context) -> XComValue:
    """The ordered changes, and what is blocked."""
    with step(site, context) as (flow, run):
        planned = flow.plan(run, only=only_of(context)).to_xcom()
        require_a_match(run, only_of(context))
        return planned


def require_a_match(run: Run, only: str | None) -> None:
    """Raise ``UsageError`` for a pattern that matches no topic: a plan of nothing would look like good news."""
    if only is None:
        return
    names = sorted({*run.read_desired().topics, *run.read_live().topics})
    if not fnmatch.filter(names, only):
        near = get_close_matches(only.strip("*"), names, n=3)
        hint = f" Near: {', '.join(near)}." if near else ""
        raise UsageError(f"only: 0 of {plural(len(names), 'topic')} match {printable(only)}.{hint} Start a new run")


def gate(site: Site, context: Context) -> XComValue:
    """Which changes run, which are held, which are skipped; in mode apply, also the newest held set.

    Tasks that have nothing to do in this run are skipped by name, so that Airflow starts no process for them.
    """
    from topicops.flow.runs.memory import keep_held, read_held, read_rejections, resting_lines
    from topicops.flow.runs.run import note
    from topicops.model.runs.memories import HeldSet
    from topicops.on_airflow.plugged import after_reading

    with step(site, context) as (flow, run):
        if mode_of(context) == "apply":
            refuse_overtaken(run, context)
        reviewed = approvals_by_review(run, context)
        approvals = (*approvals_by_parameter(context), *reviewed.approvals)
        summary = flow.gate(run, approvals=approvals).to_xcom()
        note(run, reviewed.objections)  # the gate has removed the notes of an earlier try
        keep_commit_address(run, commit_address(context["ti"], site.topics))
        after_reading(run)
        plan = run.read_plan()
        log_changes(plan)
        if mode_of(context) != "apply":
            return {
                **summary,
                **not_to_run(plan),
                SKIP: unneeded_steps(plan, approvals, mode="plan", asks=False, judged_by=judged_by(site, run)),
            }
        note_plan_of(run, context)
        held = HeldSet(addresses=approvable_changes(plan), found_by=run.name, author=triggered_by(context))
        only, before = only_of(context), read_held(run.home, run.environment)
        unseen = before.without_topics(only).addresses if only else {}
        newest = replace(held, addresses={**unseen, **held.addresses}).after(before)
        keep_held(run.home, run.environment, newest)
        rejections = read_rejections(run.home, run.environment)
        resting = [*resting_lines(rejections, held.addresses)]
        note(run, resting)
        for line in resting:
            log.info("%s", line)
        asked = {**asked_about(held, newest, rejected=rejections), "rests": len(resting)}
        asks = asked["question"] is not None
        skipped = unneeded_steps(plan, approvals, mode="apply", asks=asks, judged_by=judged_by(site, run))
        return {**summary, **not_to_run(plan), **asked, SKIP: skipped}


def asked_about(held: HeldSet, newest: HeldSet, *, rejected: Collection[str] = ()) -> XComValue:
    """What ``ask`` starts the approval run with: the digests, or only the set's own where these are too many.

    Args:
        rejected: Digests of changes that somebody rejected; a set of such changes alone is not asked about.
    """
    if set(held.addresses) <= set(rejected):
        return {"question": None, "digests": [], "held_set": "", "asked": 0}
    if digests := listed(held.digests):
        return {"question": held.digest, "digests": digests, "held_set": "", "asked": len(digests)}
    return {"question": newest.digest, "digests": [], "held_set": newest.digest, "asked": len(newest.addresses)}


def listed(digests: Sequence[str]) -> list[str]:
    """The digests if XCom can hold them; too many are left out as a whole."""
    return list(digests) if len(digests) <= MOST_DIGESTS else []


def plan_to_look_at(site: Site, context: Context) -> XComValue:
    """The ordered changes, and the gate's word on each. Asks nobody, and leaves the held set as it is."""
    from topicops.on_airflow.plugged import after_reading

    with step(site, context) as (flow, run):
        planned = flow.plan(run, only=only_of(context))
        require_a_match(run, only_of(context))
        gated = flow.gate(run)
        after_reading(run)
        log_changes(run.read_plan())
        return {**planned.to_xcom(), **gated.to_xcom()}


def drift(site: Site, context: Context) -> XComValue:
    """One log line for each difference between cluster and files, and counts. A difference fails nothing."""
    from topicops.on_airflow.metrics import count
    from topicops.on_airflow.plugged import after_reading
    from topicops.on_airflow.tellers import TELLERS
    from topicops.plugged import after_task

    with step(site, context) as (flow, run):
        found = flow.record_drift(run, only=only_of(context))
        after_task(run, mode="drift")
        if only_of(context) is None:
            after_reading(run)
        note_end(site, run, failed_tasks=("drift",) if found.differences else ())
        for teller in TELLERS:
            teller.tell_of_drift(run, site.options.notifiers, context, is_whole=only_of(context) is None)
        count(run.environment, {"drift": found.differences})
        return found.to_xcom()


def pipeline_change(action: Action) -> Callable[[Site, Context], XComValue]:
    """The task that sends one kind of change: what the gate let run, and what the run's params approve."""

    def change(site: Site, context: Context) -> XComValue:
        if mode_of(context) != "apply":
            raise AirflowSkipException("mode is plan: nothing is sent")
        with step(site, context) as (_, run):
            refuse_overtaken(run, context)
            approvals = (*approvals_by_parameter(context), *approvals_by_review(run, context).approvals)
        return send(site, context, action, approvals=approvals)

    return change


def refuse_overtaken(run: EnvironmentRun, context: Context) -> None:
    """Raise ``AirflowFailException`` in a run that was cleared after a later one had planned: it is stale."""
    from topicops.flow.runs.memory import overtaken_by

    dag_run = context["dag_run"]
    if not dag_run.clear_number:
        return
    if later := overtaken_by(run.home, run.environment, dag_run.run_after):
        raise AirflowFailException(
            f"this run was cleared, and {later} has planned since: its files and its plan may be older than what was "
            "done; nothing is sent. Start a new run, or clear that one"
        )


def send(site: Site, context: Context, action: Action, *, approvals: Sequence[Approval]) -> XComValue:
    """Apply one kind of change. Fails when any of them did not end as planned, so that no delete follows."""
    with step(site, context) as (flow, run), logged_once():
        stop = stop_asked(run, context["ti"])
        summary = flow.apply(
            run,
            actions=(action,),
            approvals=approvals,
            lock_timeout_s=LEASE_PATIENCE_S,
            attempt=context["ti"].try_number,
            started_by=triggered_by(context) or "schedule",
            interrupted=stop,
        )
        log_outcomes(run, action)
    counts = summary.counts
    if bad := {status: counts[status] for status in ("failed", "unknown", "refused", "not sent") if counts.get(status)}:
        words = ", ".join(f"{count} {status}" for status, count in bad.items())
        kind = RefusedError if set(bad) == {"refused"} else AirflowException
        kind = AirflowFailException if stop.by_a_person else kind
        raise kind(f"{action}: {words}; {stop.reason or 'the log above and the report say why'}")
    return summary.to_xcom()


def verify(site: Site, context: Context) -> Sequence[Sequence[int]]:
    """Verify each changed topic in both views; a failed check fails the run in ``report``, after the rules.

    Also after a failure: what was sent before it is verified. Each topic that is healthy gets an asset event. Returns
    the groups of topics that ``announce`` has to announce.
    """
    with step(site, context) as (flow, run):
        require_something_sent(run)
        summary = flow.verify(run)
        log_verdicts(run)
        context["ti"].xcom_push(key="verified", value=summary.to_xcom())
        return announce_topics(run, context)


def require_something_sent(run: Run) -> None:
    """Skip the task where this run has sent nothing, so that there is nothing to look at."""
    from topicops.flow.runs.outcomes import outcomes_so_far

    if not any(outcome.sent or outcome.status in IN_PLACE for outcome in outcomes_so_far(run)):
        log.info("nothing was sent in this run: there is nothing to verify")
        raise AirflowSkipException("nothing was sent in this run")


def announce(site: Site, context: Context, first: int) -> None:
    """Emit the asset events of one group of healthy topics: Airflow cannot store very many in one request."""
    with step(site, context) as (_, run):
        announce_topics(run, context, first=first)


def quality_after(site: Site, context: Context) -> XComValue:
    """Is the result healthy? Fails on a critical rule. Also in mode plan; after a failure, if something was sent."""
    with step(site, context) as (_, run):
        if failed_tasks(context) or "mode" not in context["params"]:
            require_something_sent(run)
        shown: XComValue = {}
        for quality in site.quality():
            shown = show_quality(quality.after(run), run, context)
        return shown


def report(site: Site, context: Context, *, remarks: Sequence[str] = ()) -> XComValue:
    """What was done, what failed and what to do next. Fails the run when any task, outcome or check failed.

    The XCom ``result`` has the same for CI, also when the run fails.
    """
    from topicops.flow.reporting import run_report
    from topicops.on_airflow.plugged import after_reading
    from topicops.plugged import after_task
    from topicops.steps.reporting.run_result import run_result, unhealthy_verdict

    failed, is_whole = failed_tasks(context), "mode" in context["params"]  # an approval run is of a part
    with step(site, context) as (flow, run):
        if failed and is_whole:
            note_end(site, run, failed_tasks=failed)
        after_task(run)
        summary = flow.report(run, failed_tasks=failed)
        log.info("%s", summary.summary)
        if run.store.has("report.txt"):
            log.info("\n%s", run.store.read_text("report.txt"))
        if is_whole and mode_of(context) == "apply":
            flow.note_verified(run, failed_tasks=failed)
        if is_whole and not failed:
            note_end(site, run)
        after_reading(run)
        found = run_report(run, failed_tasks=failed)
        result = run_result(found, remarks=remarks)
        hand_over(result, context)
        copy_artifacts(run, result)
        tell_of_run(run, site, context, found)
    problems = [f"{name} failed" for name in failed]
    if not summary.ok:
        problems.append(f"the run is not good: {summary.summary}")
    if "unhealthy" in site.options.fail_on and not problems and (sick := unhealthy_verdict(found)):
        problems.append(f"airflow.failOn: {sick}")
    if is_whole and not problems and only_of(context) is None:
        note_newest_good(run, site.topics)
    if problems:
        context["ti"].xcom_push(key="report", value=summary.to_xcom())
        raise AirflowFailException("; ".join(problems))
    return summary.to_xcom()


def tell_of_run(run: EnvironmentRun, site: Site, context: Context, found: RunReport) -> None:
    """Tell the notifiers how the run ended, and set the gauges of a whole run."""
    from topicops.on_airflow.metrics import count
    from topicops.on_airflow.tellers import TELLERS
    from topicops.steps.reporting.run_result import gauges_of

    mode = mode_or(context, "approval")
    is_whole = mode != "approval" and only_of(context) is None
    for teller in TELLERS:
        teller.tell_of_run(
            run,
            site.options.notifiers,
            context,
            mode=mode,
            failed_tasks=found.failed_tasks,
            is_whole=is_whole,
            approval=site.approval_id,
        )
    if is_whole:
        count(run.environment, gauges_of(found))


def tell_of_failure(site: Site, context: Context) -> None:
    """Airflow's callback of a failed run: tell the notifiers of the DAG file, unless the run's report has told.

    The DAG processor calls it, also when no task could report. ``listening`` tells the notifiers of the setting: it
    needs neither the DAG file nor its bundle.
    """
    from topicops.flow.runs.run import open_run
    from topicops.on_airflow.plugged import after_reading
    from topicops.on_airflow.tellers import TELLERS

    dag_run = context["dag_run"]
    run = open_run(environment=site.environment, topics=site.topics, group=dag_run.dag_id, run_id=dag_run.run_id)
    for teller in TELLERS:
        teller.tell_of_end(run, str(context.get("reason") or "a task failed"), site.options.notifiers, context)
    after_reading(run)


def note_newest_good(run: EnvironmentRun, topics: Path) -> None:
    from topicops.flow.runs import memory

    memory.note_newest_good(run, place_of(topics))


def verify_what_is_left(run: EnvironmentRun) -> Sequence[str]:
    """Verify what earlier runs changed and did not come to verify; the sentences are in the log and in the report."""
    from topicops.flow.runs.run import note
    from topicops.flow.verifying import verify_left

    sentences = verify_left(run)
    note(run, sentences)
    for sentence in sentences:
        log.warning("%s", sentence)
    return sentences


def hand_over(result: RunResult, context: Context) -> None:
    """Push the result as plain JSON, which CI reads through the REST API; Airflow would wrap a tuple."""
    import msgspec

    from topicops.model.runs.results import RESULT_KEY

    context["ti"].xcom_push(key=RESULT_KEY, value=msgspec.json.decode(msgspec.json.encode(result)))


def failed_tasks(context: Context) -> list[str]:
    """Tasks of the run that failed; not those that could not start because another failed."""
    # Without `announce`: it changes nothing, and Airflow may have stored the events of one whose answer came late.
    states = {name: state for name, state in task_states(context).items() if not name.startswith("announce")}
    by_state = {wanted: sorted(name for name, state in states.items() if state == wanted) for wanted in FAILED_STATES}
    return by_state["failed"] or by_state["upstream_failed"]


def task_states(context: Context) -> Mapping[str, str | None]:
    """State of each task of this run, by task id."""
    ti = context["ti"]
    states: Mapping[str, Mapping[str, str | None]] = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])
    return states.get(ti.run_id, {})


def show_quality(found: QualityReport, run: Run, context: Context) -> XComValue:
    """What fails in the log, the table of all rules in XCom ``quality``; fails on a critical rule."""
    from topicops.on_airflow.pages.quality_markdown import quality_markdown

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


def log_changes(plan: Plan) -> None:
    """One line a change, with the gate's word and its reasons, and one a blocked topic."""
    for gated in plan.changes:
        change, reasons = gated.change, "; ".join(gated.reasons)
        log.info("%s %s %s %s", gated.gate.value, change.action, change.topic, f"({reasons})" if reasons else "")
    for blocked in plan.change_set.blocked:
        log.warning("blocked %s (%s): %s", blocked.topic, "; ".join(blocked.reasons), blocked.way_out)


def not_to_run(plan: Plan) -> XComValue:
    """The topics that are blocked and the changes that are skipped, the first of them, with their codes or reasons."""
    skipped = plan.with_gate(GateWord.SKIPPED)[:MOST_NAMED]
    return {
        "blocked_topics": {found.topic: ", ".join(found.codes) for found in plan.change_set.blocked[:MOST_NAMED]},
        "skipped_changes": {f"{g.change.action} {g.change.topic}": "; ".join(g.reasons) for g in skipped},
    }


def log_outcomes(run: Run, action: Action) -> None:
    """The last log entry of a task that sends: one row a change, as Markdown."""
    from topicops.flow.runs.outcomes import read_outcomes
    from topicops.steps.reporting.run_report import outcome_table

    table = outcome_table(read_outcomes(run, (action,)))
    log.info("%s", f"\n{table}" if table else f"nothing to {action}")


def log_verdicts(run: Run) -> None:
    """The last log entry of verify: one row a topic, as Markdown."""
    from topicops.model.runs.results import Check
    from topicops.steps.reporting.run_report import verdict_table

    table = verdict_table(run.store.read_value("checks.json", tuple[Check, ...]))
    log.info("%s", f"\n{table}" if table else "nothing was changed, so there is nothing to verify")


def approvable_changes(plan: Plan) -> dict[str, str]:
    """The changes that an approval could let run: ``<action> topic.<name>`` by digest."""
    held = plan.with_gate(GateWord.HELD)
    return {g.digest: f"{g.change.action} {g.change.address}" for g in held if g.approvable}
