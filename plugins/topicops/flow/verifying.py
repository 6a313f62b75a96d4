"""Is the result right, and how did it end: quality, verify, report. Nothing here writes to the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from topicops.edges.connections.lookup import kafka_properties
from topicops.edges.home.topic_identities import TopicIdentities, own_topic_identities
from topicops.flow.applying import read_outcomes, require_planned_target
from topicops.flow.run import (
    KINDS,
    Facts,
    Run,
    audit_folder,
    baseline_file,
    broker_defaults,
    cluster_reader,
    notes_of,
    now,
    read_environment,
    with_broker_defaults,
)
from topicops.model.cluster.snapshot import ClusterSnapshot, Source
from topicops.model.errors import TopicopsError
from topicops.model.exit_status import ExitStatus
from topicops.model.plans.changes import Action, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.ports import Clock
from topicops.model.runs.quality_rows import Afterwards, QualityInput, rows_after, rows_before
from topicops.model.runs.results import (
    Check,
    Outcome,
    OutcomeStatus,
    QualityReport,
    QualityResult,
    QualitySuite,
    Verdict,
    quality_file,
)
from topicops.model.specs.environment import Environment
from topicops.steps.reporting.runs.exit_status import verify_exit_status
from topicops.steps.reporting.runs.run_report import RunReport, headline, report_json, report_markdown, report_text
from topicops.steps.verifying.cluster_health import findings_before_run
from topicops.steps.verifying.cluster_health import verify_cluster as verify_cluster_step
from topicops.steps.verifying.observation import FindingKey
from topicops.steps.verifying.verify import verify as verify_step
from topicops.steps.verifying.view_comparison import differing_topics
from topicops.steps.verifying.watch import Progress

if TYPE_CHECKING:
    from topicops.edges.kafka.broker_views import BrokerViews

T = TypeVar("T")
DELETES: tuple[Action, ...] = ("delete",)


def quality_before(run: Run) -> Facts:
    """``quality-before.json``: may the inputs be trusted, and is the cluster fit for changes?"""
    read = run.store.read_json("run.json")
    topic_count = read.get("topics_at_last_good_snapshot") if isinstance(read, dict) else None
    live = run.live
    rows = rows_before(
        run.desired, live, read_environment(run), topics_last_good=topic_count if isinstance(topic_count, int) else None
    )
    return _check_quality(run, "before", live, rows)


def quality_after(run: Run) -> Facts:
    """``quality-after.json``: is the cluster healthy? Rules over a fresh snapshot with states.

    What was wrong in ``live.json`` is told from what is new.
    """
    environment = read_environment(run)
    with cluster_reader(run, environment) as reader, closing(_broker_views(run, environment)) as brokers:
        live = with_broker_defaults(run, environment, reader.snapshot(states=True))
        differences = differing_topics(live, reader=reader, brokers=brokers, clock=Clock())
    identities = TopicIdentities(run.home, live.cluster_id)
    known = Afterwards(
        managed=run.desired.topics.keys(),
        unmanaged_percent=environment.spec.limits.unmanaged_percent,
        deleted={o.topic for o in read_outcomes(run, DELETES) if o.status is OutcomeStatus.DONE},
        known_identities=identities.read(),
        own_topic_identities=own_topic_identities(audit_folder(run.home), run.environment),
        differences=differences,
    )
    facts = _check_quality(
        run, "after", live, rows_after(live, known), earlier=lambda: _rows_earlier(run, known, live.broker_defaults)
    )
    identities.write({topic.name: topic.identity for topic in live.topics.values()})
    return facts


def _rows_earlier(run: Run, known: Afterwards, defaults: Mapping[str, str] | None) -> QualityInput:
    """The same rows as they were before the changes; none where that snapshot was read without states."""
    live = replace(run.live, broker_defaults=defaults)
    if any(topic.states is None for topic in live.topics.values()):
        return {}
    return rows_after(live, replace(known, deleted=(), known_identities=None, differences=None))


def record_baseline(run: Run, live: ClusterSnapshot, topics: Collection[str], *, kind: str) -> None:
    """``baseline-<kind>.json``: what is wrong with these topics before anything is sent, on both sides.

    What this run did is no old trouble: a file that an earlier try of the same task left stays, and topics that another
    task has begun to change are left out.
    """
    from topicops.edges.home.journal import intended_topics

    name = baseline_file(kind)
    there = live.topics.keys() & (set(topics) - intended_topics(run.store.folder))
    if run.store.has(name) or not there:
        return
    environment = read_environment(run)
    known = with_broker_defaults(run, environment, live)
    with closing(_broker_views(run, environment)) as metadata:
        found = findings_before_run(known, metadata, topics=there)
    run.store.write_value(name, tuple(sorted(found)))


def verify(run: Run, *, interrupted: Callable[[], bool] = lambda: False) -> Facts:
    """``checks.json``: each topic that apply touched, on both sides; what was wrong before is old trouble."""
    return _verify_outcomes(run, read_outcomes(run), known_findings=_known_findings(run), interrupted=interrupted)


def verify_or_say_why(run: Run, *, interrupted: Callable[[], bool]) -> None:
    """Like ``verify``, after changes that stand: an error is no end but a check, so that the report tells of both."""
    try:
        verify(run, interrupted=interrupted)
    except TopicopsError as error:
        message = f"nothing could be verified: {error}"
        _write_checks(run, [Check(id="V13", topic="", verdict=Verdict.DEGRADED, message=message, code=error.code)])


def verify_plan(run: Run, plan: Plan) -> ExitStatus:
    """Check that the cluster is as a saved plan wants it, whoever did it. Gives the exit status."""
    from topicops.flow.planning import snapshot
    from topicops.model.plans.plan_file import plan_to_json

    snapshot(run, states=True)
    require_planned_target(plan, run.live.cluster_id, run.live.chroot)
    run.store.write_text("plan.json", plan_to_json(plan))
    wanted = [gated for gated in plan.changes if gated.gate is not GateWord.SKIPPED]
    # Trouble of now is what this is about: nothing is excused as older than the run.
    _verify_outcomes(run, [_as_if_done(gated) for gated in wanted], known_findings=())
    return _verify_status(run)


def verify_cluster(run: Run) -> ExitStatus:
    """Check every topic of the cluster once, without a plan. Gives the exit status."""
    from topicops.flow.planning import snapshot

    snapshot(run, states=True)
    environment = read_environment(run)
    live = with_broker_defaults(run, environment, run.live)
    run.progress(f"Asking {len(live.brokers)} brokers about {len(live.topics)} topics")
    with closing(_broker_views(run, environment)) as metadata:
        checks = verify_cluster_step(
            live,
            metadata,
            confirmed=lambda names: _still_absent(run, environment, names),
        )
    _write_checks(run, checks)
    return _verify_status(run)


def run_report(
    run: Run, *, failed_tasks: Sequence[str] = (), problem: str = "", interrupted: bool = False
) -> RunReport:
    """All that the run has left in its folder so far."""
    return RunReport(
        environment=run.environment,
        plan=run.plan if run.store.has("plan.json") else None,
        outcomes=read_outcomes(run),
        checks=_read(run, "checks.json", tuple[Check, ...]),
        quality_before=_quality_results(run, "before"),
        quality_after=_quality_results(run, "after"),
        failed_tasks=tuple(failed_tasks),
        problem=problem,
        interrupted=interrupted,
        source=_source(run),
        notes=notes_of(run),
    )


def report(run: Run, *, failed_tasks: Sequence[str] = (), problem: str = "", interrupted: bool = False) -> Facts:
    """``report.txt``, ``report.md`` and ``report.json``; ``ok``: nothing failed; ``summary``: the first line."""
    told = run_report(run, failed_tasks=failed_tasks, problem=problem, interrupted=interrupted)
    _write_report(run, told)
    return {
        "path": str(run.store.path("report.txt")),
        "ok": told.is_success,
        "summary": headline(told),
        "held": told.summary.held,
        "skipped": told.summary.skipped,
        "blocked": told.summary.blocked,
    }


def _write_report(run: Run, told: RunReport) -> None:
    run.store.write_text("report.txt", report_text(told))
    run.store.write_text("report.md", report_markdown(told))
    run.store.write_json("report.json", report_json(told))


def _read(run: Run, name: str, kind: type[T]) -> T:
    """An artifact that is a tuple; an empty one where its step has not run."""
    return run.store.read_value(name, kind) if run.store.has(name) else kind()


def _source(run: Run) -> Source:
    """Where the run's snapshot was read; a run without one has verified nothing."""
    read = run.store.read_json("run.json") if run.store.has("run.json") else None
    return "kafka" if isinstance(read, dict) and read.get("source") == "kafka" else "zookeeper"


def _quality_results(run: Run, suite: QualitySuite) -> tuple[QualityResult, ...]:
    name = quality_file(suite)
    return run.store.read_value(name, QualityReport).results if run.store.has(name) else ()


def _check_quality(
    run: Run,
    suite: QualitySuite,
    live: ClusterSnapshot,
    rows: QualityInput,
    *,
    earlier: Callable[[], QualityInput] | None = None,
) -> Facts:
    from topicops.edges.spark.quality import check_quality
    from topicops.edges.spark.session import spark_session

    started = time.monotonic()
    with spark_session() as spark:
        results = check_quality(spark, suite, rows, earlier=earlier)
    found = QualityReport(
        suite=suite,
        environment=run.environment,
        cluster_id=live.cluster_id,
        run=run.name,
        checked_at=now(),
        seconds=round(time.monotonic() - started, 3),
        results=results,
    )
    path = run.store.write_value(quality_file(suite), found)
    return {
        "path": str(path),
        "rules": len(results),
        "failed": [result.rule for result in found.failed],
        "critical": list(found.critical),
    }


def _verify_outcomes(
    run: Run,
    outcomes: Sequence[Outcome],
    *,
    known_findings: Collection[FindingKey],
    interrupted: Callable[[], bool] = lambda: False,
) -> Facts:
    plan, environment = run.plan, read_environment(run)
    with cluster_reader(run, environment) as reader, closing(_broker_views(run, environment)) as metadata:
        checks = verify_step(
            plan,
            outcomes,
            reader=reader,
            metadata=metadata,
            deadlines=environment.spec.verify,
            clock=Clock(),
            progress=lambda seen: run.progress(progress_line(seen)),
            interrupted=interrupted,
            known_findings=known_findings,
            broker_defaults=broker_defaults(run, environment),
            source=environment.spec.cluster.source,
        )
    return _write_checks(run, checks)


def progress_line(seen: Progress) -> str:
    waiting = f"; {seen.waiting_for[0]}" if seen.waiting_for else ""
    return f"verify: {seen.healthy} of {seen.topics} topics are right{waiting}"


def _write_checks(run: Run, checks: Sequence[Check]) -> Facts:
    path = run.store.write_value("checks.json", tuple(checks))
    counts: Facts = {verdict.value: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
    return {"path": str(path), "topics": len({check.topic for check in checks if check.topic}), **counts}


def _broker_views(run: Run, environment: Environment) -> BrokerViews:
    from topicops.edges.kafka.broker_views import BrokerViews

    return BrokerViews(kafka_properties(environment, "reader", run.connections))


def _still_absent(run: Run, environment: Environment, names: Collection[str]) -> list[str]:
    """Names that the first side still has not: a topic may have been made since the snapshot."""
    with cluster_reader(run, environment) as reader:
        traces = reader.traces(sorted(names))
    return [name for name in sorted(names) if traces[name].live is None]


def _known_findings(run: Run) -> frozenset[FindingKey]:
    """Of every task that sent something."""
    names = [name for name in (baseline_file(kind) for kind in KINDS) if run.store.has(name)]
    return frozenset(found for name in names for found in run.store.read_value(name, tuple[FindingKey, ...]))


def _as_if_done(gated: GatedChange) -> Outcome:
    """For a plan whose apply is not ours to know: what it says shall be so."""
    change = gated.change
    return Outcome(topic=change.topic, action=change.action, digest=gated.digest, status=OutcomeStatus.DONE)


def _verify_status(run: Run) -> ExitStatus:
    told = run_report(run)
    _write_report(run, told)
    return verify_exit_status(told.summary)
