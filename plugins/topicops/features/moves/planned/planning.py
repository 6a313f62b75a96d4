"""The plans of ``rebalance`` and ``drain``: from files and cluster to a gated plan. Nothing is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from topicops.features.moves.asked.changes import move_obstacles
from topicops.features.moves.asked.draining import drained_topics
from topicops.features.moves.asked.judged import command_problems
from topicops.features.moves.asked.planner import PLANNER
from topicops.features.moves.planned.rebalancing import (
    Sizes,
    Wish,
    balance_change,
    left_out_notes,
    movable_topics,
    rebalanced,
    takers_of,
)
from topicops.features.moves.stepping import open_cluster
from topicops.flow.engines import PYTHON
from topicops.flow.planning import MOST_REHEARSED, compare, gate_changes, read_snapshot, specs_of
from topicops.flow.runs.access import Access, with_broker_answers, with_log_directories
from topicops.flow.runs.files import commit_of_files, read_needed_specs
from topicops.flow.runs.kept import keep_changes, keep_plan, keep_specs
from topicops.flow.runs.run import EnvironmentRun, safety_notes
from topicops.flow.runs.values import Comparison, Planned, Snapshot, Specs
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.changes import Change, MoveReason, ReassignTopic
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import Blocked, ChangeSet
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Environment
from topicops.steps.before_deletes import not_checked
from topicops.steps.planning.placement.load import load_table
from topicops.steps.planning.plan import plan as plan_step
from topicops.steps.planning.right_cluster import release_warnings
from topicops.steps.rack_losses import planned_losses

NOTHING_DIFFERS = Delta(topics=(), counts={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Files and cluster, as a plan needs them."""

    run: EnvironmentRun
    specs: Specs
    snapshot: Snapshot
    comparison: Comparison
    live: ClusterSnapshot
    """Cluster with accepted moves, brokers that are drained, and what brokers answered."""

    @property
    def environment(self) -> Environment:
        return self.specs.environment

    @property
    def desired(self) -> Desired:
        return self.specs.desired

    @property
    def access(self) -> Access:
        return self.run.access(self.environment)

    def with_sizes(self, topics: Collection[str]) -> ClusterSnapshot:
        """Return the cluster with the sizes of the logs of these topics."""
        if not topics:
            return self.live
        with self.access.questions() as questions:
            return with_log_directories(self.live, topics, {}, questions)


def plan_rebalance(run: EnvironmentRun, wish: Wish) -> Planned:
    """Plan the moves that make brokers even; every topic of the files counts.

    Raises:
        SpecError: With every problem of the files.
        UsageError: A broker of the wish gets no replicas.
        ClusterError: It cannot be read, or a broker does not tell the sizes that the wish needs.
    """
    read = _read(run)
    whole = read.live.with_accepted_moves
    movable = movable_topics(read.desired, whole, read.environment)
    if wish.racks_only:
        movable = frozenset(name for name in movable if read.desired.topics[name].rack_aware)
    takers_of(wish, whole)
    sizes = _partition_sizes(read, movable) if wish.most_bytes is not None else {}
    run.progress(f"Placing the replicas of {plural(len(movable), 'topic')}")
    rows = rebalanced(wish, whole, movable, sizes)
    live = read.with_sizes(rows.keys())
    wanted = [
        balance_change(whole.topics[name], its, read.desired.topics[name], live, wish.why) for name, its in rows.items()
    ]
    changes, problems = _without_problems(wanted, read, live)
    return _planned(read, live, changes, warnings=left_out_notes(whole, movable, problems))


def plan_drain(run: EnvironmentRun, broker: int) -> Planned:
    """Plan the moves off one broker, as if ``cluster.draining`` named it.

    Raises:
        SpecError: With every problem of the files.
        UsageError: The environment drains the broker already, or the cluster does not have it.
        ClusterError: It cannot be read.
    """
    read = _read(run)
    draining = read.environment.spec.cluster.draining
    if broker in draining:
        place = read.environment.place_of("cluster.draining")
        raise UsageError(f"broker {broker} is in cluster.draining ({place}): `topicops plan` plans what moves off it")
    held = drained_topics(read.live, _draining(read.environment, (broker,)))
    if not held and broker not in read.live.brokers:
        raise UsageError(f"the cluster has no broker {broker}; live are {brokers_text(read.live.brokers)}")
    environment = _draining(read.environment, (*draining, broker))
    live = read.with_sizes(held.keys())
    run.progress(f"Placing the replicas of {plural(len(held), 'topic')}")
    delta, at = read.comparison.delta, run.clock.utc()
    found = plan_step(read.desired, live, delta, environment, now=at, moves=PLANNER, drained=held)
    wanted = [
        c for c in found.changes if isinstance(c, ReassignTopic) and c.why is MoveReason.DRAIN and c.topic in held
    ]
    mixed = {change.topic for change in wanted if not frozenset(draining).isdisjoint(change.removed)}
    changes, problems = _without_problems([c for c in wanted if c.topic not in mixed], read, live)
    blocked = tuple(entry for entry in found.blocked if entry.topic in held)
    said = {change.topic for change in wanted} | {entry.topic for entry in blocked}
    warnings = [w for w in found.warnings if "cluster.draining" in w]
    warnings += [f"{name} stays on broker {broker}: {problem}" for name, problem in sorted(problems.items())]
    if others := sorted({change.topic for change in found.changes if change.topic in held} - said | mixed):
        warnings.append(_later(others, held, broker))
    return _planned(read, live, changes, warnings=warnings, blocked=blocked)


def _later(topics: Collection[str], held: Mapping[str, int], broker: int) -> str:
    partitions = plural(sum(held[name] for name in topics), "partition")
    return (
        f"{plural(len(topics), 'topic')} with {partitions} on broker {broker} ({', '.join(topics)}) get other changes "
        "first: run `topicops plan`, apply that, then drain again"
    )


def _read(run: EnvironmentRun) -> _Read:
    """Read files and cluster, keep both, and ask the brokers what a move depends on."""
    run.progress(f"Reading {run.topics}")
    specs = specs_of(read_needed_specs(run.files, None, run.progress), commit_of_files(run.files))
    specs = keep_specs(run, specs, as_tables=False)
    access = run.access(specs.environment)
    run.progress(f"Reading the live topics of {run.environment}")
    snapshot = read_snapshot(run, access, specs.desired, states=True)
    comparison = compare(run, specs.desired, snapshot.live, engine=PYTHON, connections=run.connections)
    live = replace(
        snapshot.live,
        broker_defaults=None,
        draining=frozenset(specs.environment.spec.cluster.draining),
        accepted_moves=run.known_moves().accepted(snapshot.live),
    )
    with access.questions() as questions:
        live = with_log_directories(with_broker_answers(live, questions), (), {}, questions)
    return _Read(run=run, specs=specs, snapshot=snapshot, comparison=comparison, live=live)


def _partition_sizes(read: _Read, topics: Collection[str]) -> Sizes:
    """Return the bytes of each partition's largest log. Raises ``ClusterError`` where a broker does not tell them."""
    with read.access.reader() as reader, open_cluster(read.access, reader) as cluster:
        told = cluster.log_sizes(sorted(read.live.brokers), topics)
    sizes: dict[str, dict[int, int]] = {}
    for broker, found in sorted(told.items()):
        if isinstance(found, str):
            raise ClusterError(
                f"broker {broker} does not tell the sizes of its logs: {found}; leave --bytes out to count replicas"
            )
        for (topic, partition), size in found.bytes_of.items():
            its = sizes.setdefault(topic, {})
            its[partition] = max(size, its.get(partition, 0))
    return sizes


def _without_problems(
    changes: Iterable[ReassignTopic], read: _Read, live: ClusterSnapshot
) -> tuple[list[ReassignTopic], dict[str, str]]:
    """Return the changes that may run as far as is known now, and why the others may not, by topic."""
    kept: list[ReassignTopic] = []
    problems: dict[str, str] = {}
    for change in changes:
        problem = next(command_problems(change, read.desired, live, read.environment), None)
        if problem is None:
            kept.append(change)
        else:
            problems[change.topic] = problem
    return kept, problems


def _planned(
    read: _Read,
    live: ClusterSnapshot,
    changes: Iterable[Change],
    *,
    warnings: Iterable[str],
    blocked: tuple[Blocked, ...] = (),
) -> Planned:
    """Gate the changes, and keep the plan."""
    run, environment = read.run, read.environment
    found = tuple(sorted(changes, key=lambda change: change.topic))
    empty = plan_step(read.desired, live, NOTHING_DIFFERS, environment, now=run.clock.utc(), drained={})
    is_rehearsed = found and live.has_states and live.partitions <= MOST_REHEARSED
    change_set: ChangeSet = replace(
        empty,
        source=replace(empty.source, only=""),
        changes=found,
        blocked=blocked,
        load=load_table(live, found),
        rack_losses=planned_losses(live, found) if is_rehearsed else None,
        move_obstacles=move_obstacles(found, live, environment),
        warnings=(
            *warnings,
            *not_checked(live.log_directories or {}),
            *release_warnings(environment, live.releases),
            *safety_notes(environment),
            *read.access.login_notes(),
        ),
    )
    keep_changes(run, change_set)
    gated = gate_changes(run, environment, change_set)
    keep_plan(run, gated.plan)
    return Planned(
        specs=read.specs, snapshot=read.snapshot, comparison=read.comparison, changes=change_set, plan=gated.plan
    )


def _draining(environment: Environment, brokers: tuple[int, ...]) -> Environment:
    """Return the environment as if its file had these brokers in ``cluster.draining``."""
    cluster = msgspec.structs.replace(environment.spec.cluster, draining=brokers)
    place = environment.locations.get("cluster.draining", Location(environment.file))
    locations = {**environment.locations, "cluster.draining": place}
    return replace(environment, spec=msgspec.structs.replace(environment.spec, cluster=cluster), locations=locations)
