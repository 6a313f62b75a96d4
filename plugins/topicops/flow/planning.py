"""From files and cluster to a plan: read, compare, plan, gate. Nothing here writes to the cluster.

Each step takes values and gives values; ``kept`` writes them to the run's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from topicops.edges.home.memories import keep_topic_count
from topicops.flow.engines import DiffEngine, engine_for, topics_to_compare
from topicops.flow.runs.access import Access, with_broker_answers, with_log_directories
from topicops.flow.runs.files import commit_notes, commit_of_files, read_needed_specs, require_pinned_files
from topicops.flow.runs.guards import counted_signatures, known_past_deletes, place_of, remember_topics, require_whole
from topicops.flow.runs.kept import (
    keep_changes,
    keep_comparison,
    keep_plan,
    keep_reading,
    keep_snapshot,
    keep_specs,
    live_snapshot,
    note_reading,
    prune,
)
from topicops.flow.runs.memory import waits_for
from topicops.flow.runs.run import EnvironmentRun, Notes, Run, safety_notes
from topicops.flow.runs.values import Comparison, Planned, Snapshot, Specs
from topicops.model.choices import EngineChoice
from topicops.model.cluster.broker_defaults import unoffered_text, without_answer
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import ClusterError, UsageError
from topicops.model.memory import WithNewer, hold
from topicops.model.plans.changes import CreateTopic
from topicops.model.plans.delta import Delta, TopicClass, TopicDelta
from topicops.model.plans.plan import Approval, ChangeSet, Plan, TopicActivity
from topicops.model.ports import Clock, ConnectionSource, ServerTime, Unoffered
from topicops.model.release import CORDONS
from topicops.model.runs.facts import Reading
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.steps.before_deletes import cordons_not_known, not_checked
from topicops.steps.clocks import NO_SERVER_TIME, difference_text, passed_by_both
from topicops.steps.planning.blocking import Situation
from topicops.steps.planning.diff import check_conserved
from topicops.steps.planning.gate import gate as gate_step
from topicops.steps.planning.only import Only, keep_only, needs_of, no_match
from topicops.steps.planning.plan import is_to_move, situations_of, topics_whose_isr_counts
from topicops.steps.planning.plan import plan as plan_step
from topicops.steps.planning.right_cluster import release_warnings, require_cluster_id
from topicops.steps.planning.risk import config_risk
from topicops.steps.rack_losses import planned_losses

if TYPE_CHECKING:
    from topicops.steps.specs.validate import Validated

SILENT_BROKERS = (
    "no broker gave its defaults of topic configs, so the plan assumes the worse case: either no broker answered in "
    "time, or the reader lacks DescribeConfigs on the cluster (see topicops doctor)"
)
ITS_DEFAULTS = "its defaults of topic configs are not known, so the plan assumes the worse case"

MOST_REHEARSED = 1_000_000
"""Most partitions of a cluster for which a plan counts the cost of losing each rack; this many take five seconds."""
BLIND_SPOTS = (
    "read from the brokers of a ZooKeeper cluster: deletion markers, and configs without a topic, are not known; "
    "Kafka refuses to create a topic that is still being deleted"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """A plan with the gate's word on each change."""

    plan: Plan
    objections: Sequence[str] = ()
    """Reasons why an approval does not count, a sentence each."""


def make_plan(
    run: EnvironmentRun,
    *,
    engine: EngineChoice = "auto",
    engines: Sequence[DiffEngine] = (),
    states: bool = False,
    only: Only | None = None,
) -> Planned:
    """Validate, snapshot, diff, plan and gate.

    Args:
        engines: The installed engines beside plain Python.
        states: Read partition states too.
        only: A glob, or names; topics that do not match are left out.

    Raises:
        SpecError: With every problem of the files.
        WrongTargetError: It is another cluster, or too many topics are gone.
        ClusterError: It cannot be read.
        DiffError: The classes do not add up to the topics of files and cluster.
        TopicopsError: The engine failed, or its counts are not those of the snapshot.
        UsageError: A glob matches no topic.
    """
    run.progress(f"Reading {run.topics}")
    validated = read_needed_specs(run.files, needs_of(only), run.progress)
    chosen = engine_for(engine, topics_to_compare(run.home, validated), engines)
    specs = specs_of(validated, commit_of_files(run.files))
    prune(run.home, now=run.clock.utc())
    access = run.access(specs.environment)
    with chosen.engine.beside(run.connections, run.progress):
        specs = keep_specs(run, specs, as_tables=chosen.engine.needs_tables)
        run.progress(f"Reading the live topics of {run.environment}")
        snapshot = read_snapshot(run, access, specs.desired, states=states)
        if problem := no_match(only, sorted({*specs.desired.topics, *snapshot.live.topics})):
            raise UsageError(problem)
        run.progress(f"Comparing with {len(snapshot.live.topics)} live topics ({chosen})")
        comparison = compare(run, specs.desired, snapshot.live, engine=chosen.engine, connections=run.connections)
    snapshot, change_set = plan_changes(run, access, specs.desired, snapshot, comparison.delta, only=only)
    gated = gate_changes(run, specs.environment, change_set)
    planned = Planned(specs=specs, snapshot=snapshot, comparison=comparison, changes=change_set, plan=gated.plan)
    keep_plan(run, gated.plan)
    return planned


def specs_of(validated: Validated, commit: str | None) -> Specs:
    """Give the valid files. Raises ``SpecError`` with every problem of files that are not."""
    environment, desired = validated.require()
    return Specs(environment=environment, desired=replace(desired, commit=commit))


def read_snapshot(run: Run, access: Access, desired: Desired | None, *, states: bool) -> Snapshot:
    """Read the cluster, keep the snapshot, and remember its topics.

    Args:
        desired: The topics of the files; None means that this run looks at the cluster alone.

    Raises:
        WrongTargetError: It is another cluster, or too many topics are gone.
        ClusterError: It cannot be read.
        UsageError: A connection cannot be used.
    """
    note_reading(run, access.home, "before")
    environment, tables = access.environment, run.tables()
    if environment.spec.cluster.kafka is not None:
        access.kafka("reader")  # what could not be applied and verified is not planned
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = live_snapshot(tables, reader, environment.spec.cluster.release, states=states)
        if desired is not None:
            # A topic that the brokers hide from this reader looks absent, and would be planned as new.
            reader.require_describable(sorted(desired.topics.keys() - live.topics.keys()))
    topics_before = require_whole(access.home, environment, live)
    keep_topic_count(access.home, live.cluster_id, len(live.topics))
    read_at, here = run.clock.utc(), place_of(access.home)
    lost = remember_topics(access.home, environment.name, live, tables, desired, at=read_at)
    snapshot = Snapshot(
        live=replace(live, lost=lost),
        reading=Reading(
            read_at=read_at,
            source=live.source,
            cluster_id=live.cluster_id,
            topics=len(live.topics),
            partitions=live.partitions,
            brokers=len(live.brokers),
            topics_at_last_good_snapshot=topics_before,
            host=here.host,
            home=here.token,
        ),
    )
    keep_snapshot(run, snapshot)
    return snapshot


def compare(
    run: Run, desired: Desired, live: ClusterSnapshot, *, engine: DiffEngine, connections: ConnectionSource
) -> Comparison:
    """Compare, and keep the comparison.

    Raises:
        DiffError: The classes do not add up to the topics.
        TopicopsError: The engine failed.
    """
    comparison = engine.compare(run, desired, live, connections)
    check_conserved(comparison.delta, desired.topics, live.topics)
    keep_comparison(run, comparison)
    return comparison


def plan_changes(
    run: EnvironmentRun, access: Access, desired: Desired, snapshot: Snapshot, delta: Delta, *, only: Only | None = None
) -> tuple[Snapshot, ChangeSet]:
    """Plan and keep the ordered changes, and what is blocked, drifted, unmanaged or paused.

    Gives the snapshot, which names the brokers' releases now, and the changes.
    """
    environment, live, at, moves = access.environment, snapshot.live, run.clock.utc(), access.moves
    live = replace(live, accepted_moves=access.known_moves().accepted(live))
    drained = moves.drained(live, environment)
    named = {row.topic for row in delta.topics} | live.deleting.keys() | drained.keys()
    named |= live.accepted_moves.keys()
    hold(desired.topics, named)
    hold(live.topics, named)

    def situations(live: ClusterSnapshot) -> Sequence[Situation]:
        return situations_of(desired, live, delta, environment, now=at, moves=moves, drained=drained)

    live, activity, doubts_of_brokers = _with_broker_answers(access, live, delta, drained, situations)
    live = _with_needed_states(access, live, situations)
    missing = {row.topic for row in delta.topics if row.topic_class is TopicClass.MISSING}
    live = replace(live, past_deletes=known_past_deletes(access.home, environment.name, missing))
    server_time, doubts = _server_time(access, delta, run.clock)
    warnings = (
        *doubts_of_brokers,
        *((BLIND_SPOTS,) if live.unknown and not environment.spec.cluster.is_managed else ()),
        *release_warnings(environment, live.releases),
        *safety_notes(environment),
        *access.login_notes(),
        *doubts,
    )
    at = passed_by_both(server_time, run.clock)
    change_set = plan_step(
        desired, live, delta, environment, now=at, activity=activity, warnings=warnings, moves=moves, drained=drained
    )
    if only is not None:
        change_set = keep_only(change_set, live, desired.topics, only)
    change_set = _with_notes_of_lost_files(run.topics, change_set, live, desired.prefix)
    is_placed = not environment.spec.cluster.is_managed
    if is_placed and change_set.changes and live.has_states and live.partitions <= MOST_REHEARSED:
        change_set = replace(change_set, rack_losses=planned_losses(live, change_set.changes))
    keep_changes(run, change_set)
    if live.releases is not None:
        snapshot = replace(snapshot, reading=replace(snapshot.reading, brokers_run=str(live.releases)))
        keep_reading(run, snapshot.reading)
    return snapshot, change_set


def _with_notes_of_lost_files(topics: Path, change_set: ChangeSet, live: ClusterSnapshot, prefix: str) -> ChangeSet:
    """Note on a created topic with a renamed file that this is no rename: the old topic stays, without a file."""
    from topicops.edges.specs.git import name_in_repository, removed_files
    from topicops.steps.planning.planned_changes import with_notes_of_lost_files

    unmanaged = set(change_set.unmanaged)
    if not unmanaged or not any(isinstance(change, CreateTopic) for change in change_set.changes):
        return change_set
    root = name_in_repository(topics)
    files = (PurePosixPath(name) for name in sorted(removed_files(topics)))
    named = ((f"{prefix}{file.stem}", file) for file in files)
    lost = {name: f"{root}{file.parent}" for name, file in named if name in unmanaged}
    if not lost:
        return change_set
    hold(live.topics, lost)
    partitions = {name: live.topics[name].partitions for name in lost}
    return replace(change_set, changes=with_notes_of_lost_files(change_set.changes, lost, partitions))


def gate_changes(
    run: EnvironmentRun,
    environment: Environment,
    change_set: ChangeSet,
    *,
    approvals: Sequence[Approval] = (),
    is_merged: bool = True,
) -> Gated:
    """Sort each change into run, held or skipped; the approvals let run what the policy counts.

    Args:
        is_merged: Whether the files have their commit, which ``policy.after`` asks for.

    Raises ``MovedFilesError``: the files are not of the commit that the run is pinned to.
    """
    waits: Sequence[str] = ()
    if is_merged:
        require_pinned_files(run.files)
        warnings = (*change_set.warnings, *commit_notes(run.topics, environment, change_set))
        change_set = replace(change_set, warnings=warnings)
        waits = tuple(waits_for(run.home, environment, run.topics, change_set.source.commit))
    first = gate_step(change_set, environment, waits=waits)
    counted = counted_signatures(environment, approvals, first.changes, run.clock)
    gated = gate_step(change_set, environment, approved=counted.signatures, waits=waits)
    return Gated(plan=gated, objections=counted.objections)


def gate_again(
    run: EnvironmentRun, environment: Environment, change_set: ChangeSet, approvals: Sequence[Approval]
) -> Gated:
    """Gate with these approvals, and keep the plan; the report says why an approval does not count."""
    gated = gate_changes(run, environment, change_set, approvals=approvals)
    keep_plan(run, gated.plan)
    for objection in gated.objections:
        run.progress(objection)
    Notes(run).add(gated.objections)
    return gated


def _with_needed_states(
    access: Access, live: ClusterSnapshot, situations: Callable[[ClusterSnapshot], Sequence[Situation]]
) -> ClusterSnapshot:
    """Return the snapshot with the partition states of the topics whose plan depends on them."""
    names = topics_whose_isr_counts(situations(live))
    missing = [name for name in names if live.topics[name].states is None]
    if not missing:
        return live
    with access.reader() as reader:
        traces = reader.traces(missing, states=True)
    states = {name: found.live.states for name, found in traces.items() if found.live is not None}
    newer = {name: replace(live.topics[name], states=found) for name, found in states.items()}
    return replace(live, topics=WithNewer(live.topics, newer))


def _with_broker_answers(
    access: Access,
    live: ClusterSnapshot,
    delta: Delta,
    drained: Mapping[str, int],
    situations: Callable[[ClusterSnapshot], Sequence[Situation]],
) -> tuple[ClusterSnapshot, Mapping[str, TopicActivity], tuple[str, ...]]:
    """Return the snapshot with releases and config defaults, traffic, and a warning where a change needed them in vain.

    Only brokers know them, and each is asked for once, where something is to change. The risk of an expansion depends
    on the default of ``cleanup.policy``, and the loss of a rack on that of ``min.insync.replicas``.
    """
    live = replace(live, broker_defaults=None)
    if not drained and all(t.topic_class is TopicClass.UNMANAGED for t in delta.topics):
        return live, {}, ()
    is_rated_by_defaults = any({"configs", "partitions", "replication_factor"} & t.changed for t in delta.topics)
    doomed, is_managed = _doomed(delta), access.environment.spec.cluster.is_managed
    with access.questions() as brokers:
        live = with_broker_answers(live, brokers)
        places = drained or any(t.topic_class is TopicClass.MISSING or t.changed - {"configs"} for t in delta.topics)
        sized = [t.topic for t in delta.topics if _may_be_shorter(t)]
        found = situations(live)
        sized += [situation.desired.name for situation in found if is_to_move(situation)]
        if doomed or places or sized:
            new = {situation.desired.name: situation.new_partitions for situation in found if situation.new_partitions}
            live = with_log_directories(live, {*doomed, *sized}, new, brokers)
        told = live.broker_defaults or {}
        refusing = {b: sentence for b, sentence in told.items() if isinstance(sentence, Unoffered)}
        silent = without_answer({b: found for b, found in told.items() if b not in refusing})
        is_answered = len(silent) < len(told)
        activity = brokers.activity(doomed) if doomed and is_answered else {}
        unread_groups = brokers.unread_groups if is_managed else ""
    unread = "; ".join(_unread(live, refusing, unread_groups))
    warnings = [f"{sentence}; {ITS_DEFAULTS}" for sentence in silent] if is_answered else [SILENT_BROKERS]
    needed = warnings if is_rated_by_defaults or doomed or drained else ()
    refused = [f"not checked: {unread}"] if unread else []
    if places and not is_managed and live.releases and live.releases.newest >= CORDONS:
        refused += cordons_not_known(live.log_directories or {}, live.brokers)
    return live, activity, (*refused, *needed, *(not_checked(live.log_directories or {}) if doomed or places else ()))


def _unread(live: ClusterSnapshot, defaults: Mapping[int, str], groups: str) -> Iterator[str]:
    """Yield what a managed cluster did not tell, each with the request that it refused."""
    yield from (f"{what} ({why})" for what, why in live.unread.items())
    if defaults:
        worse = "so the plan assumes the worse case"
        yield f"the brokers' defaults of topic configs ({unoffered_text(defaults)}), {worse}"
    told = live.log_directories or {}
    if disks := {broker: found for broker, found in told.items() if isinstance(found, Unoffered)}:
        yield f"log directories ({unoffered_text(disks)})"
    if groups:
        yield f"consumer groups (ListGroups: {groups}), so no topic can be deleted"


def _server_time(access: Access, delta: Delta, clock: Clock) -> tuple[ServerTime | None, tuple[str, ...]]:
    """Return a server's time if a topic is to be deleted; warn if this host's clock is wrong or unproved.

    Only KRaft controllers tell it here: ZooKeeper's clock shows in the lease, which apply takes and compares.
    """
    spec = access.environment.spec
    if not _doomed(delta) or (spec.cluster.source, spec.cluster.lease) == ("zookeeper", "zookeeper"):
        return None, ()
    server_time = None
    with suppress(ClusterError), access.reader() as reader:
        server_time = reader.server_time()
    unproved = server_time is None and spec.rests_for and spec.policy.delete_active == "refuse"
    doubt = NO_SERVER_TIME if unproved else difference_text(server_time, clock)
    return server_time, (doubt,) if doubt else ()


def _may_be_shorter(topic: TopicDelta) -> bool:
    """Return whether its retention may get shorter; without an override the brokers' defaults decide that."""
    if "configs" not in topic.changed or topic.live is None or topic.desired is None:
        return False
    old, new = json.loads(topic.live.configs), json.loads(topic.desired.configs)
    ends = ((name, old.get(name), new.get(name)) for name in ("retention.ms", "retention.bytes"))
    return any(a != b and Code.RETENTION_DELETES in config_risk(name, a, b, None)[1] for name, a, b in ends)


def _doomed(delta: Delta) -> list[str]:
    return [topic.topic for topic in delta.topics if topic.topic_class is TopicClass.TOMBSTONED]
