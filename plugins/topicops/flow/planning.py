"""From files and cluster to a plan: validate, snapshot, diff, plan, gate. Nothing here writes to the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from topicops.flow.engines import ChosenEngine, engine_for, topics_to_compare
from topicops.flow.later_changes import note_reading
from topicops.flow.runs.access import Access, with_broker_answers, with_log_directories
from topicops.flow.runs.commits import (
    commit_notes,
    commit_of_files,
    read_files,
    require_pinned_files,
    wait_for_pinned_files,
)
from topicops.flow.runs.facts import write_facts
from topicops.flow.runs.guards import counted_signatures
from topicops.flow.runs.lost_topics import known_past_deletes, remember_topics
from topicops.flow.runs.one_home import place_of
from topicops.flow.runs.run import (
    DELTA_FILE,
    DIAGNOSTICS_FILE,
    ENVIRONMENT_FILE,
    FILES_COMMIT,
    KINDS,
    NOTES_FILE,
    PLAN_FILE,
    CountedSummary,
    Engine,
    EngineChoice,
    Run,
    Summary,
    baseline_file,
    diagnostics_named,
    now,
    outcomes_file,
    read_environment,
    read_needed_specs,
    read_specs,
    safety_notes,
)
from topicops.flow.runs.topic_data import live_snapshot, prune, write_desired, write_live
from topicops.flow.runs.verified import waits_for
from topicops.model.cluster.broker_defaults import without_answer
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ClusterError, SpecError
from topicops.model.plans.approval import Approval
from topicops.model.plans.changes import ACTIONS, CreateTopic, GateWord
from topicops.model.plans.delta import Delta, TopicClass, TopicDelta, desired_row, live_row
from topicops.model.plans.plan import ChangeSet, Plan, TopicActivity
from topicops.model.plans.plan_file import changes_to_json, plan_to_json
from topicops.model.ports import Clock, ServerTime
from topicops.model.runs.facts import Facts, facts_file
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.model.topics_in_files import WithNewer, hold
from topicops.steps.clocks import NO_SERVER_TIME, difference_text, passed_by_both
from topicops.steps.facts import classes_by_owner, counts_without_states, facts_of, partition_counts
from topicops.steps.log_directories import not_checked
from topicops.steps.planning.gate import gate as gate_step
from topicops.steps.planning.only import Only, keep_only, needs_of
from topicops.steps.planning.plan import plan as plan_step
from topicops.steps.planning.plan import topics_with_rising_min_isr
from topicops.steps.planning.releases import release_warnings

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder
    from topicops.steps.specs.validate import Validated

SILENT_BROKERS = (
    "no broker gave its defaults of topic configs, so the plan assumes the worse case: either no broker answered in "
    "time, or the reader lacks DescribeConfigs on the cluster (see topicops doctor)"
)
ITS_DEFAULTS = "its defaults of topic configs are not known, so the plan assumes the worse case"

MOST_REHEARSED = 1_000_000
"""Partitions of a cluster of which a plan counts what the loss of each rack costs; this many take five seconds."""
BLIND_SPOTS = (
    "read from the brokers of a ZooKeeper cluster: deletion markers, and configs without a topic, are not known; "
    "Kafka refuses to create a topic that is still being deleted"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateSummary(Summary):
    topics: int
    warnings: int
    commit: str | None
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary(Summary):
    cluster_id: str
    topics: int
    partitions: int
    brokers: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSummary(Summary):
    counts: Mapping[str, int]
    """Topics of each class."""
    seconds: float
    """Of this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary(Summary):
    changes: int
    blocked: int
    drift: int
    unmanaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSummary(CountedSummary):
    """How many changes have each word of the gate."""

    fingerprint: str


def validate(run: Run, *, as_tables: bool = False, patience_s: float = 0.0) -> ValidateSummary:
    """``environment.json`` and ``desired.json``. Opens no connection.

    Args:
        as_tables: Keep the topics of this run, desired and live, in tables.
        patience_s: How long to wait until the files are those of the commit that the run is pinned to.

    Raises:
        SpecError: With every problem, which ``diagnostics.json`` keeps for the run's page.
        MovedFilesError: The files are not of the pinned commit.
    """
    wait_for_pinned_files(run, patience_s=patience_s, clock=Clock())
    validated, commit = read_files(run, lambda: read_specs(run))
    run.store.remove(DIAGNOSTICS_FILE)
    run.store.write_text(FILES_COMMIT, commit or "")
    try:
        return _keep_read_specs(run, validated, commit, as_tables=as_tables)
    except SpecError as error:
        found = diagnostics_named(run.topics, error.diagnostics)
        run.store.write_value(DIAGNOSTICS_FILE, found)
        raise SpecError(found) from error


def _keep_read_specs(run: Run, validated: Validated, commit: str | None, *, as_tables: bool) -> ValidateSummary:
    prune(run.home, now=now())
    return keep_specs(run, validated, commit=commit, as_tables=as_tables)


def keep_specs(run: Run, validated: Validated, *, commit: str | None, as_tables: bool) -> ValidateSummary:
    """What ``validate`` writes. Raises ``SpecError`` for files that are not valid."""
    environment, desired = validated.require()
    run.store.write_value(ENVIRONMENT_FILE, environment)
    desired = replace(desired, commit=commit)
    path = write_desired(run, desired, environment.spec.cluster.release, as_tables=as_tables)
    return ValidateSummary(
        path=str(path),
        topics=len(desired.topics),
        warnings=len(desired.warnings),
        commit=desired.commit,
        digest=desired.digest,
    )


def snapshot(run: Run, *, states: bool = False) -> SnapshotSummary:
    """``live.json``. Raises ``WrongTargetError`` for another cluster or a shrunken world, else ``ClusterError``."""
    started = time.monotonic()
    note_reading(run, "before")
    live = read_cluster(run, tables=run.tables(), states=states)
    path = keep_snapshot(run, live)
    return SnapshotSummary(
        path=str(path),
        cluster_id=live.cluster_id,
        topics=len(live.topics),
        partitions=live.partitions,
        brokers=len(live.brokers),
        seconds=round(time.monotonic() - started, 3),
    )


def read_cluster(run: Run, *, tables: TableFolder | None, states: bool) -> ClusterSnapshot:
    """The environment's own cluster as it is now. Nothing is kept but its topics, in these tables.

    Raises:
        WrongTargetError: It is another cluster.
        ClusterError: It cannot be read.
        UsageError: A connection cannot be used.
    """
    from topicops.steps.planning.cluster_guard import require_cluster_id

    environment = read_environment(run)
    access = run.access(environment)
    if environment.spec.cluster.kafka is not None:
        access.kafka("reader")  # what could not be applied and verified is not planned
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = live_snapshot(tables, reader, environment.spec.cluster.release, states=states)
        if run.store.has("desired.json"):
            # A topic that the brokers hide from this reader looks absent, and would be planned as new.
            reader.require_describable(sorted(run.read_desired().topics.keys() - live.topics.keys()))
    return live


def keep_snapshot(run: Run, live: ClusterSnapshot) -> Path:
    """``live.json`` of what ``read_cluster`` gave. Raises ``ShrunkenWorldError`` when too many topics are gone."""
    from topicops.edges.home.topic_count import TopicCount
    from topicops.steps.planning.cluster_guard import require_not_shrunken

    topic_count = TopicCount(run.home, live.cluster_id)
    topics_before = topic_count.read()
    require_not_shrunken(len(live.topics), topics_before, read_environment(run).spec.limits.shrink_percent)
    topic_count.write(len(live.topics))
    read_at = now()
    path = write_live(run, replace(live, lost=remember_topics(run, live, at=read_at)))
    read = {"read_at": read_at.isoformat(), "source": live.source, "topics_at_last_good_snapshot": topics_before}
    size = {"topics": len(live.topics), "partitions": live.partitions, "brokers": len(live.brokers)}
    here = place_of(run.home)
    place = {"host": here.host, "home": here.token}
    run.store.write_json("run.json", {**read, **place, "cluster_id": live.cluster_id, **size})
    return path


def diff(run: Run, *, engine: Engine = "spark") -> DiffSummary:
    """``delta.json`` and ``facts-before.json``.

    Raises:
        DiffError: The classes do not add up to the topics of files and cluster.
        TopicopsError: Spark failed, or its counts are not those of the snapshot.
    """
    desired, live, tables = run.read_desired(), run.read_live(), run.tables()
    started = time.monotonic()
    if engine == "spark" and tables is not None:
        delta, facts = _compared_by_spark(run, tables, desired, live)
    else:
        delta, facts = _compared_by_python(desired, live)
    path = keep_delta(run, delta, facts, desired=desired.topics, live=live.topics)
    return _diff_summary(path, delta, started)


def diff_once(run: Run, *, engine: Engine = "spark") -> DiffSummary:
    """As ``diff``, unless the run has a ``delta.json``: that is of this snapshot, because each snapshot removes it."""
    started = time.monotonic()
    if not run.store.has(DELTA_FILE):
        return diff(run, engine=engine)
    return _diff_summary(run.store.path(DELTA_FILE), run.read_delta(), started)


def _diff_summary(path: Path, delta: Delta, started: float) -> DiffSummary:
    counts = {topic_class.value: count for topic_class, count in delta.counts.items()}
    return DiffSummary(path=str(path), counts=counts, seconds=round(time.monotonic() - started, 3))


def keep_delta(run: Run, delta: Delta, facts: Facts, *, desired: Iterable[str], live: Iterable[str]) -> Path:
    """What ``diff`` writes, about these topics, by name. Raises ``DiffError`` as ``diff`` does."""
    from topicops.steps.planning.diff import check_conserved

    check_conserved(delta, desired, live)
    tables = run.tables()
    write_facts(run, "before", facts, tables)
    if tables is not None:
        from topicops.edges.tables.results import write_delta

        write_delta(tables, delta)
    return run.store.write_value(DELTA_FILE, delta)


def plan(run: Run, *, only: Only | None = None) -> PlanSummary:
    """``changes.json``: the ordered changes, and what is blocked, drifted, unmanaged or paused.

    Args:
        only: A glob, or names; topics that do not match are left out.
    """
    environment = read_environment(run)
    access = run.access(environment)
    desired, live, delta, at = run.read_desired(), run.read_live(), run.read_delta(), now()
    named = {row.topic for row in delta.topics} | live.deleting.keys()
    hold(desired.topics, named)
    hold(live.topics, named)
    live = _with_needed_states(access, desired, live, delta, at)
    live, activity, warnings = _with_broker_answers(access, live, delta)
    missing = {row.topic for row in delta.topics if row.topic_class is TopicClass.MISSING}
    live = replace(live, past_deletes=known_past_deletes(run, missing))
    server_time, doubts = _server_time(access, delta)
    if live.unknown:
        warnings = (*warnings, BLIND_SPOTS)
    warnings = (
        *warnings,
        *release_warnings(environment, live.releases),
        *safety_notes(environment),
        *access.login_notes(),
        *doubts,
    )
    at = passed_by_both(server_time, Clock(utc=now))
    change_set = plan_step(desired, live, delta, environment, now=at, activity=activity, warnings=warnings)
    if only is not None:
        change_set = keep_only(change_set, live, desired.topics, only)
    change_set = _with_notes_of_lost_files(run, change_set, live)
    change_set = _with_rack_losses(change_set, live)
    path = run.store.write_text("changes.json", changes_to_json(change_set))
    run.note_releases(live.releases)
    return PlanSummary(
        path=str(path),
        changes=len(change_set.changes),
        blocked=len(change_set.blocked),
        drift=len(change_set.drift),
        unmanaged=len(change_set.unmanaged),
    )


def _with_rack_losses(change_set: ChangeSet, live: ClusterSnapshot) -> ChangeSet:
    """Nothing is read for it but the topics of the snapshot."""
    from topicops.steps.rehearsing.planned_losses import planned_losses

    if not change_set.changes or not live.has_states or live.partitions > MOST_REHEARSED:
        return change_set
    return replace(change_set, rack_losses=planned_losses(live, change_set.changes))


def _with_notes_of_lost_files(run: Run, change_set: ChangeSet, live: ClusterSnapshot) -> ChangeSet:
    """A created topic whose file had another name before is no rename: the old topic stays, and has no file."""
    from topicops.edges.specs.git import name_in_repository, removed_files
    from topicops.steps.planning.renames import with_notes_of_lost_files

    unmanaged = set(change_set.unmanaged)
    if not unmanaged or not any(isinstance(change, CreateTopic) for change in change_set.changes):
        return change_set
    root = name_in_repository(run.topics)
    files = (PurePosixPath(name) for name in sorted(removed_files(run.topics)))
    lost = {file.stem: f"{root}{file.parent}" for file in files if file.stem in unmanaged}
    if not lost:
        return change_set
    hold(live.topics, lost)
    partitions = {name: live.topics[name].partitions for name in lost}
    return replace(change_set, changes=with_notes_of_lost_files(change_set.changes, lost, partitions))


def gate(run: Run, *, approvals: Sequence[Approval] = ()) -> GateSummary:
    """``plan.json``: each change sorted into run, held or skipped; the approvals let run what the policy counts.

    An earlier try of the run applied an earlier plan: its outcomes, notes, checks and baselines are removed.

    Raises:
        MovedFilesError: The files are not of the commit that the run is pinned to.
    """
    require_pinned_files(run)
    environment, change_set = read_environment(run), run.read_change_set()
    warnings = (*change_set.warnings, *commit_notes(run, environment, change_set))
    waits = tuple(waits_for(run, environment, change_set.source.commit))
    return _gated(run, environment, replace(change_set, warnings=warnings), approvals, waits)


def gate_before_merge(run: Run) -> GateSummary:
    """As ``gate``, for files that have no commit yet: ``policy.after`` is asked when they have one."""
    return _gated(run, read_environment(run), run.read_change_set(), (), ())


def _gated(
    run: Run, environment: Environment, change_set: ChangeSet, approvals: Sequence[Approval], waits: Sequence[str]
) -> GateSummary:
    run.store.remove(*(outcomes_file(action) for action in ACTIONS), "checks.json", NOTES_FILE)
    run.store.remove("quality-after.json", facts_file("after"))
    run.store.remove(*(baseline_file(kind) for kind in KINDS))
    first = gate_step(change_set, environment, waits=waits)
    approved = counted_signatures(run, environment, approvals, first.changes)
    gated = gate_step(change_set, environment, approved=approved, waits=waits)
    path = run.store.write_text(PLAN_FILE, plan_to_json(gated))
    counts = {word.value: len(gated.with_gate(word)) for word in GateWord}
    return GateSummary(path=str(path), fingerprint=gated.fingerprint, counts=counts)


def make_plan(run: Run, *, engine: EngineChoice = "auto", states: bool = False, only: Only | None = None) -> Plan:
    """Validate, snapshot, diff, plan and gate."""
    run.progress(f"Reading {run.topics}")
    chosen = _validate_for(run, engine, only)
    with _spark_beside(run) if chosen.engine == "spark" else nullcontext():
        run.progress(f"Reading the live topics of {run.environment}")
        found = snapshot(run, states=states)
        run.progress(f"Comparing with {found.topics} live topics ({chosen})")
        diff(run, engine=chosen.engine)
    plan(run, only=only)
    gate(run)
    return run.read_plan()


def _validate_for(run: Run, choice: EngineChoice, only: Only | None) -> ChosenEngine:
    """As ``validate``; the engine is chosen when the topics of the files are known, and before they are kept."""
    validated = read_needed_specs(run, needs_of(only))
    chosen = engine_for(choice, topics_to_compare(run, validated))
    _keep_read_specs(run, validated, commit_of_files(run), as_tables=chosen.engine == "spark")
    return chosen


def _spark_beside(run: Run) -> AbstractContextManager[None]:
    """Spark starts beside the work of the block."""
    from topicops.edges.spark.session import spark_application

    return spark_application(connections=run.connections)


def _compared_by_spark(run: Run, tables: TableFolder, desired: Desired, live: ClusterSnapshot) -> tuple[Delta, Facts]:
    from topicops.edges.spark.diff import spark_diff
    from topicops.edges.spark.facts import count_partitions
    from topicops.edges.spark.quality_frames import RunTables
    from topicops.edges.spark.session import planned_for, spark_session

    with spark_session(connections=run.connections) as spark:
        frames = RunTables(spark, tables, live)
        with planned_for(spark, len(desired.topics) + len(live.topics)):
            delta, classes = spark_diff(frames.frame("desired"), frames.frame("topics"))
        counts = count_partitions(frames) if live.has_states else counts_without_states(live)
        return delta, facts_of(counts, live, classes)


def _compared_by_python(desired: Desired, live: ClusterSnapshot) -> tuple[Delta, Facts]:
    from topicops.steps.planning.diff import diff as plain_diff

    delta = plain_diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    counts = partition_counts(live) if live.has_states else counts_without_states(live)
    return delta, facts_of(counts, live, classes_by_owner(desired.topics.values(), delta))


def _with_needed_states(
    access: Access, desired: Desired, live: ClusterSnapshot, delta: Delta, at: datetime
) -> ClusterSnapshot:
    """The snapshot with the partition states of the few topics whose plan depends on them."""
    names = topics_with_rising_min_isr(desired, live, delta, access.environment, now=at)
    missing = [name for name in names if live.topics[name].states is None]
    if not missing:
        return live
    with access.reader() as reader:
        traces = reader.traces(missing, states=True)
    states = {name: found.live.states for name, found in traces.items() if found.live is not None}
    newer = {name: replace(live.topics[name], states=found) for name, found in states.items()}
    return replace(live, topics=WithNewer(live.topics, newer))


def _with_broker_answers(
    access: Access, live: ClusterSnapshot, delta: Delta
) -> tuple[ClusterSnapshot, Mapping[str, TopicActivity], tuple[str, ...]]:
    """The snapshot with releases and config defaults, traffic, and a warning where a change needed them in vain.

    Only brokers know them, and each is asked for once, where something is to change. The risk of an expansion depends
    on the default of ``cleanup.policy``, and the loss of a rack on that of ``min.insync.replicas``.
    """
    live = replace(live, broker_defaults=None)
    if not delta.topics:
        return live, {}, ()
    is_rated_by_defaults = any({"configs", "partitions"} & topic.changed for topic in delta.topics)
    doomed = _doomed(delta)
    with access.questions() as brokers:
        live = with_broker_answers(live, brokers)
        if doomed or any(map(_places_replicas, delta.topics)):
            live = with_log_directories(live, doomed, brokers)
        silent = without_answer(live.broker_defaults or {})
        is_answered = len(silent) < len(live.broker_defaults or {})
        activity = brokers.activity(doomed) if doomed and is_answered else {}
    warnings = [f"{sentence}; {ITS_DEFAULTS}" for sentence in silent] if is_answered else [SILENT_BROKERS]
    needed = warnings if is_rated_by_defaults or doomed else ()
    return live, activity, (*needed, *not_checked(live.log_directories or {}))


def _places_replicas(topic: TopicDelta) -> bool:
    return topic.topic_class is TopicClass.MISSING or bool(topic.changed - {"configs"})


def _server_time(access: Access, delta: Delta) -> tuple[ServerTime | None, tuple[str, ...]]:
    """A server's time where a topic is to be deleted, and a warning where this host's clock is wrong or unproved.

    Only KRaft controllers tell it here: ZooKeeper's clock shows in the lease, which apply takes and compares.
    """
    spec, clock = access.environment.spec, Clock()
    if not _doomed(delta) or (spec.cluster.source, spec.cluster.lease) == ("zookeeper", "zookeeper"):
        return None, ()
    server_time = None
    with suppress(ClusterError), access.reader() as reader:
        server_time = reader.server_time()
    unproved = server_time is None and spec.rests_for and spec.policy.delete_active == "refuse"
    doubt = NO_SERVER_TIME if unproved else difference_text(server_time, clock)
    return server_time, (doubt,) if doubt else ()


def _doomed(delta: Delta) -> list[str]:
    return [topic.topic for topic in delta.topics if topic.topic_class is TopicClass.TOMBSTONED]
