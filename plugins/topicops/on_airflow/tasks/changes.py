"""The tasks that send changes, verify them and report, of the pipeline and of an approval."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from math import ceil
from typing import Any

import msgspec
from airflow.sdk import Context, ObjectStoragePath, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.types import RuntimeTaskInstanceProtocol as TaskInstance

from topicops.flow.reporting import run_report
from topicops.flow.runs.memory import note_newest_good, stop_reason
from topicops.flow.runs.outcomes import outcomes_so_far, read_outcomes
from topicops.flow.runs.run import CHECKS_FILE, EnvironmentRun, read_environment
from topicops.model.errors import TopicopsError
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import Approval
from topicops.model.runs.results import IN_PLACE, NO_FAILURE, Check, Outcome, OutcomeStatus, RunResult, Verdict
from topicops.on_airflow.airflow_inside import count
from topicops.on_airflow.for_dag_files import kafka_alias, kafka_asset, topic_asset, topics_alias
from topicops.on_airflow.names import place_of, topic_address
from topicops.on_airflow.plugged import after_reading, carry_on, end_engines
from topicops.on_airflow.plugged_at_start import TELLERS
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks.opening import (
    XComValue,
    approvals_of_params,
    failed_tasks,
    is_whole,
    mode_of,
    only_of,
    opened,
    refuse_overtaken,
    triggered_by,
)
from topicops.on_airflow.tasks.planning import hand_over, note_end, show_quality
from topicops.plugged import after_task
from topicops.steps.reporting.run_report import RunReport, outcome_table, verdict_table
from topicops.steps.reporting.run_result import gauges_of, run_result, unhealthy_verdict

log = logging.getLogger(__name__)

LEASE_PATIENCE_S = 1800.0
"""Seconds that a task waits for another's lease; below the tasks' own time limit."""
ASKED_EVERY_S = 0.05
"""The loops of a wait ask many times in a second; Airflow's answer takes some milliseconds."""
ASKED_AGAIN_AFTER = 3.0
"""Airflow is asked again after so many times as long as its last answer took, or a slow one takes all of a task's time.

Airflow also ends a task that it has stopped by itself, with the next heartbeat of its worker.
"""
ASKED_AGAIN_WITHIN_S = 30.0
"""Airflow is asked again after this at the latest, also where one answer took minutes."""
NEW_ASSETS_PER_S = 2.0
"""Number of events that Airflow surely stores while a task waits for its answer. Airflow 3.3 makes each new asset with
an insert of its own: on a busy machine with SQLite, 18 took 8 s, and the worker had given up after 5 s.
"""
MOST_TOPICS = 25
"""Most topics of a group, however long the worker waits: with SQLite nobody else can write meanwhile."""
Group = Sequence[int | str]
"""The place of a group's first topic, and the server that its events name; a list, as Airflow stores it."""
COPIED = (
    "run.json", "plan.json", "quality-before.json", "quality-after.json", "report.txt", "report.md", "report.json",
)  # fmt: skip
RESULT = "result.json"
"""File with the result for CI, as in the XCom ``result``."""


class RefusedError(AirflowFailException):
    """Changes were refused, and nothing worse happened."""


# ---- sending ----


def pipeline_change(action: Action, site: Site, context: Context) -> XComValue:
    """Send one kind of change: what the gate let run, and what the run's params approve."""
    if mode_of(context) != "apply":
        raise AirflowSkipException("mode is plan: nothing is sent")
    with opened(site, context) as (_, run):
        refuse_overtaken(run, context)
        approvals, _ = approvals_of_params(run, context)
    return send(site, context, action, approvals=approvals)


def send(site: Site, context: Context, action: Action, *, approvals: Sequence[Approval]) -> XComValue:
    """Apply one kind of change. Fails when any of them did not end as planned, so that no delete follows."""
    with opened(site, context) as (tools, run), logged_once():
        stop = StopAsked(run, context["ti"])
        counts = tools.flow.apply(
            run,
            actions=(action,),
            approvals=approvals,
            lock_timeout_s=LEASE_PATIENCE_S,
            attempt=context["ti"].try_number,
            started_by=triggered_by(context) or "schedule",
            interrupted=stop,
        )
        table = outcome_table(read_outcomes(run, (action,)))
        log.info("%s", f"\n{table}" if table else f"nothing to {action}")
        carry_on(run, context)
    if bad := {status: counts[status] for status in ("failed", "unknown", "refused", "not sent") if counts.get(status)}:
        words = ", ".join(f"{number} {status}" for status, number in bad.items())
        kind = RefusedError if set(bad) == {"refused"} else AirflowException
        kind = AirflowFailException if stop.by_a_person else kind
        raise kind(f"{action}: {words}; {stop.reason or 'the log above and the report say why'}")
    return {**counts}


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


@dataclass(slots=True)
class StopAsked:
    """Asked before each request; true from the first time on that a stop was asked for, or that nobody can say.

    A stop of ``topicops stop`` is seen at once. For one of Airflow it asks Airflow, and less often where that is slow.
    """

    run: EnvironmentRun
    ti: TaskInstance
    reason: str = ""
    by_a_person: bool = False
    """Whether a person asked; then no other try of the task may go on."""
    _looks_at: float = float("-inf")
    """When the next look is due."""
    _asks_at: float = float("-inf")
    """When Airflow is asked next; looks before that read only whether ``topicops stop`` was typed."""

    def __call__(self) -> bool:
        if not self.reason and time.monotonic() >= self._looks_at:
            self.reason = self._found()
            self._looks_at = time.monotonic() + ASKED_EVERY_S
            if self.reason:
                log.warning("nothing more is sent: %s", self.reason)
        return bool(self.reason)

    def _found(self) -> str:
        if reason := stop_reason(self.run):
            self.by_a_person = True
            return reason
        began = time.monotonic()
        return "" if began < self._asks_at else self._found_by_airflow(began)

    def _found_by_airflow(self, began: float) -> str:
        try:
            of_run, of_task = self._states()
        except Exception as error:  # noqa: BLE001  whatever it is, nobody knows whether the run was stopped
            return f"Airflow does not say whether this run still runs: {type(error).__name__}: {error}"
        answered = time.monotonic()
        self._asks_at = answered + min(ASKED_AGAIN_AFTER * (answered - began), ASKED_AGAIN_WITHIN_S)
        if of_run != "running":
            return f"the run is {of_run or 'gone'} and no longer running in Airflow"
        return "" if of_task == "running" else f"the task is {of_task or 'gone'} and no longer running in Airflow"

    def _states(self) -> tuple[str, str]:
        """Give Airflow's word for this run, and for this task; empty for one that it does not have."""
        ti = self.ti
        of_tasks = ti.get_task_states(dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id])
        of_task = of_tasks.get(ti.run_id, {}).get(ti.task_id)
        of_run = ti.get_dagrun_state(dag_id=ti.dag_id, run_id=ti.run_id)
        return str(getattr(of_run, "value", of_run or "")), str(getattr(of_task, "value", of_task or ""))


# ---- verifying ----


def verify(site: Site, context: Context) -> Sequence[Group]:
    """Verify each changed topic in both views; return the groups of topics that ``announce`` has to announce."""
    with opened(site, context) as (tools, run):
        require_something_sent(run)
        summary = tools.flow.verify(run)
        table = verdict_table(run.store.read_value(CHECKS_FILE, tuple[Check, ...]))
        log.info("%s", f"\n{table}" if table else "nothing was changed, so there is nothing to verify")
        context["ti"].xcom_push(key="verified", value=summary)
        return announce_topics(run, context)


def require_something_sent(run: EnvironmentRun) -> None:
    """Skip the task where this run has sent nothing, so that there is nothing to look at."""
    if not any(outcome.sent or outcome.status in NO_FAILURE for outcome in outcomes_so_far(run)):
        log.info("nothing was sent in this run: there is nothing to verify")
        raise AirflowSkipException("nothing was sent in this run")


def announce(site: Site, context: Context, first: int, server: str | None = None) -> None:
    with opened(site, context) as (_, run):
        announce_topics(run, context, first=first, server=server)


def announce_topics(
    run: EnvironmentRun, context: Context, *, first: int = 0, server: str | None = None
) -> Sequence[Group]:
    """Emit two events for each topic of one group that this run created or changed, and that ``verify`` found healthy.

    One is for our own asset, one for that of Airflow's Kafka provider. They use aliases, because only a run knows which
    topics it changes. The group is small enough for Airflow to store its events before the worker gives up; it is
    larger only where Airflow would not start as many tasks.

    Args:
        first: The place of the group's first topic, in the order of the outcomes.
        server: Whose ``kafka://`` the events name. None: the connection tells, which costs a few questions to Airflow.

    Returns the two for each group that follows.
    """
    ready = ready_topics(read_outcomes(run), run.store.read_value(CHECKS_FILE, tuple[Check, ...]))
    commit = run.read_plan().change_set.source.commit or ""
    found = {topic: {"actions": [*actions], "commit": commit} for topic, actions in ready.items()}
    return announce_group(run, context, found, first=first, server=server)


def announce_group(
    run: EnvironmentRun,
    context: Context,
    ready: Mapping[str, Mapping[str, Any]],
    *,
    first: int = 0,
    server: str | None = None,
) -> Sequence[Group]:
    """Emit the events of one group of these topics, each with what its event says, as ``announce_topics`` does."""
    answered_within_s: float = conf.getfloat("workers", "execution_api_timeout")
    most_groups: int = conf.getint("core", "max_map_length")
    stored_in_time = int(answered_within_s * NEW_ASSETS_PER_S / 2)
    size = max(min(stored_in_time, MOST_TOPICS), 1, ceil(len(ready) / most_groups))
    group = dict(islice(ready.items(), first, first + size))
    if not group:
        return ()
    events, server = context["outlet_events"], first_server(run) if server is None else server
    for topic, said in group.items():
        extra: dict[str, Any] = {**said, "run": run.name, "page": topic_address(run.environment, topic)}
        events[topics_alias(run.environment)].add(topic_asset(run.environment, topic), extra)
        if server:
            events[kafka_alias(run.environment)].add(kafka_asset(server, topic), extra)
    log.info("asset events: %s", ", ".join(topic_asset(run.environment, topic).uri for topic in group))
    return [[start, server] for start in range(first + size, len(ready), size)]


def first_server(run: EnvironmentRun) -> str:
    """Give host and port of the first bootstrap server; empty, with a line in the log, where it is not known."""
    try:
        servers = run.access(read_environment(run)).kafka("reader")["bootstrap.servers"]
    except TopicopsError as error:
        log.warning("no events of kafka://: %s", error)
        return ""
    return servers.split(",")[0].strip().rpartition("://")[2]


def ready_topics(outcomes: Sequence[Outcome], checks: Sequence[Check]) -> Mapping[str, Sequence[Action]]:
    """Give the actions that are in place, by topic.

    Without topics that are gone, whose replicas still move, or with a check that failed.
    """
    unhealthy = {check.topic for check in checks if check.is_problem or check.verdict is Verdict.MOVING}
    unhealthy |= {outcome.topic for outcome in outcomes if outcome.status is OutcomeStatus.MOVING}
    found: dict[str, list[Action]] = {}
    for outcome in outcomes:
        if outcome.status in IN_PLACE and outcome.action != "delete" and outcome.topic not in unhealthy:
            found.setdefault(outcome.topic, []).append(outcome.action)
    return found


def quality_after(site: Site, context: Context) -> XComValue:
    with opened(site, context) as (tools, run):
        if failed_tasks(context) or not is_whole(context):
            require_something_sent(run)
        shown: XComValue = {}
        for quality in tools.quality:
            shown = show_quality(quality.after(run, tools.engine_of(run)), run, context)
        return shown


# ---- the end of the run ----


def report(site: Site, context: Context, *, remarks: Sequence[str] = ()) -> XComValue:
    """Report, and fail the run when any task, outcome or check failed. CI gets the XCom ``result`` also then."""
    failed, whole = failed_tasks(context), is_whole(context)
    with opened(site, context) as (tools, run):
        end_engines(run)
        if failed and whole:
            note_end(tools, run, failed_tasks=failed)
        after_task(run)
        carry_on(run, context)
        summary = tools.flow.report(run, failed_tasks=failed)
        log.info("%s", summary.summary)
        if run.store.has("report.txt"):
            log.info("\n%s", run.store.read_text("report.txt"))
        if whole and mode_of(context) == "apply":
            tools.flow.note_verified(run, failed_tasks=failed)
        if whole and not failed:
            note_end(tools, run)
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
    if whole and not problems and only_of(context) is None:
        note_newest_good(run, place_of(site.topics))
    if problems:
        context["ti"].xcom_push(key="report", value=asdict(summary))
        raise AirflowFailException("; ".join(problems))
    return asdict(summary)


def tell_of_run(run: EnvironmentRun, site: Site, context: Context, found: RunReport) -> None:
    """Tell the notifiers how the run ended, and set the gauges of a run of all topics."""
    mode = mode_of(context) if is_whole(context) else "approval"
    is_of_all = is_whole(context) and only_of(context) is None
    for teller in TELLERS:
        teller.tell_of_run(
            run,
            site.options.notifiers,
            context,
            mode=mode,
            failed_tasks=found.failed_tasks,
            is_whole=is_of_all,
            approval=site.approval_id,
        )
    if is_of_all:
        count(run.environment, gauges_of(found))


def copy_artifacts(run: EnvironmentRun, result: RunResult) -> None:
    """Copy what the run found to ``$TOPICOPS_ARTIFACTS/<DAG>/<run>/``; a problem is logged and fails nothing.

    ``TOPICOPS_ARTIFACTS`` is any address of Airflow's ``ObjectStoragePath``, such as ``s3://conn_id@bucket/prefix``.
    The run itself stays in its folder: leases, journals and the audit log need locks, which object stores do not have.
    """
    if not (address := os.environ.get("TOPICOPS_ARTIFACTS")):
        return
    try:
        folder = ObjectStoragePath(address) / run.store.folder.parent.name / run.store.folder.name
        if folder.protocol in ("", "file", "local"):  # other stores have no folders
            folder.mkdir(parents=True, exist_ok=True)
        for name in filter(run.store.has, COPIED):
            (folder / name).write_bytes(run.store.path(name).read_bytes())
        (folder / RESULT).write_bytes(msgspec.json.encode(result))
    except Exception as error:  # noqa: BLE001 - each store has errors of its own, and a copy must fail no run
        log.warning("the run's artifacts are not copied (TOPICOPS_ARTIFACTS): %s: %s", type(error).__name__, error)
        return
    log.info("copied the run's artifacts to %s", folder)
