"""Many environments at once: files that are read once, one application of the engine, and a run for each environment.

Each environment's run is a folder, named as the environment is, in the folder of the whole. It holds what a run of
that environment alone holds. An error ends its own environment, and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from topicops.edges.connections.lookup import from_environment
from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.specs.git import name_in_repository
from topicops.edges.specs.open_files import count_topic_files, environment_files, require_folder, shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing, fleet_text
from topicops.flow.engines import DiffEngine, engine_for
from topicops.flow.planning import specs_of
from topicops.flow.runs.access import NO_MOVES, Moves
from topicops.flow.runs.files import commit_of_files
from topicops.flow.runs.kept import keep_specs, prune
from topicops.flow.runs.run import (
    DRIFT_FILE,
    ENVIRONMENT_FILE,
    PLAN_FILE,
    EnvironmentRun,
    no_progress,
    now,
    open_run,
    read_environment,
)
from topicops.flow.single_steps import diff, gate, plan, record_drift, snapshot
from topicops.flow.whole_runs import check_cluster
from topicops.model.choices import EngineChoice
from topicops.model.errors import ExitStatus, UsageError
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Plan
from topicops.model.ports import ConnectionSource
from topicops.model.printable import plural
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.planning.diff import counted, drift_summary
from topicops.steps.planning.only import needs_of, no_match
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.reporting.plan_wording import summary_line
from topicops.steps.reporting.run_report import headline
from topicops.steps.specs.needed import Needs, left_out_line, no_topic
from topicops.steps.specs.validate import Validated, validate_each, with_folder_named

ALL = "all"
REACHED_AT_ONCE = 16
"""A server that does not answer costs its whole time limit, so others are asked meanwhile."""
READ_AT_ONCE = 4
"""Each reading holds a part of its topics."""
PLANNED_AT_ONCE = 2
"""A plan may wait for brokers, and holds the topics that differ."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    store: ArtifactStore
    """The folder of the whole."""
    topics: Path
    runs: Mapping[str, EnvironmentRun]
    """Runs by environment, in the order in which they were named."""
    progress: Callable[[str], None] = no_progress

    def runs_of(self, report: FleetReport) -> list[EnvironmentRun]:
        """Give the run of each environment that did not fail."""
        return [self.runs[result.environment] for result in report.environments if result not in report.broken]


def environments_of(topics: Path, named: Sequence[str]) -> tuple[str, ...]:
    """Return those that a command line names, each once; ``all``: all that have a file, and ``UsageError`` for none."""
    require_folder(topics)
    there = environment_files(topics)
    if ALL in named and ALL not in there:
        if not there:
            raise UsageError(f"{topics}/environments: no environment has a file there")
        return there
    return tuple(dict.fromkeys(named))


def open_fleet(
    environments: Iterable[str],
    *,
    topics: Path,
    group: str,
    run_id: str,
    connections: ConnectionSource = from_environment,
    progress: Callable[[str], None] = no_progress,
    moves: Moves = NO_MOVES,
) -> Fleet:
    """Open as ``open_run``, for many environments: ``<home>/runs/<group>/<run id>/<environment>``."""
    runs = {
        environment: open_run(
            environment=environment,
            topics=topics,
            group=group,
            run_id=run_id,
            connections=connections,
            progress=lambda line, name=environment: progress(f"{name}: {line}"),  # type: ignore[misc]
            part=environment,
            moves=moves,
        )
        for environment in environments
    }
    folder = next(iter(runs.values())).store.folder.parent
    return Fleet(store=ArtifactStore(folder), topics=topics, runs=runs, progress=progress)


class Steps:
    """Takes one step after the other for all environments that have not failed."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.failures: dict[str, EnvironmentResult] = {}

    @property
    def going(self) -> list[EnvironmentRun]:
        return [run for name, run in self.fleet.runs.items() if name not in self.failures]

    def each(self, step: Callable[[EnvironmentRun], T], *, at_once: int = 1) -> dict[str, T]:
        """Return a step's results by environment; an error ends its environment. One at a time uses this thread."""
        runs = self.going
        found = map(partial(attempt, step), runs) if at_once == 1 else _side_by_side(step, runs, at_once=at_once)
        values = {run.environment: self.noted(run, value) for run, value in zip(runs, found, strict=True)}
        return {environment: value for environment, value in values.items() if not isinstance(value, Exception)}

    def noted(self, run: EnvironmentRun, found: T | Exception) -> T | Exception:
        """Return what a step gave; an error ends the environment."""
        if isinstance(found, Exception):
            failed = self.failures[run.environment] = EnvironmentResult.failed(run.environment, found)
            self.fleet.progress(f"{run.environment}: {failed.summary}")
        return found

    def report(self, results: Mapping[str, EnvironmentResult]) -> FleetReport:
        """Return ``fleet.json`` and ``fleet.txt``."""
        report = FleetReport.of([{**results, **self.failures}[name] for name in self.fleet.runs])
        self.fleet.store.write_json("fleet.json", report)
        self.fleet.store.write_text("fleet.txt", f"{fleet_text(report)}\n")
        return report


def _side_by_side(
    step: Callable[[EnvironmentRun], T], runs: Sequence[EnvironmentRun], *, at_once: int
) -> Iterator[T | Exception]:
    with ThreadPoolExecutor(at_once) as pool:
        try:
            yield from [future.result() for future in [pool.submit(copy_context().run, attempt, step, r) for r in runs]]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def attempt(step: Callable[[EnvironmentRun], T], run: EnvironmentRun) -> T | Exception:
    """Return what the step gives; its error as a value."""
    try:
        return step(run)
    except Exception as error:  # noqa: BLE001 - one environment's problem, whatever it is, stops no other
        return error


def plan_fleet(
    fleet: Fleet,
    *,
    engine: EngineChoice = "auto",
    engines: Sequence[DiffEngine] = (),
    states: bool = False,
    only: str | None = None,
) -> FleetReport:
    """Plan each environment, byte for byte as in its own run. Raises ``UsageError`` for an unknown one."""
    steps = Steps(fleet)
    _compare(steps, engine, engines, states=states, needs=needs_of(only))
    fleet.progress(f"Planning {plural(len(steps.going), 'environment')}")
    found = steps.each(partial(_planned, only=only), at_once=PLANNED_AT_ONCE)
    return steps.report(found)


def drift_fleet(
    fleet: Fleet, *, engine: EngineChoice = "auto", engines: Sequence[DiffEngine] = (), only: str | None = None
) -> FleetReport:
    """Return where each live cluster differs from the files; a line for each difference."""
    steps = Steps(fleet)
    _compare(steps, engine, engines, states=False, needs=needs_of(only) or no_topic)
    return steps.report(steps.each(partial(_drifted, only=only)))


def verify_fleet(fleet: Fleet) -> FleetReport:
    """Check every topic of each cluster once, as ``check_cluster`` does."""
    steps = Steps(fleet)

    def keep(validated: Validated, run: EnvironmentRun) -> None:
        run.store.write_value(ENVIRONMENT_FILE, validated.require()[0])

    _keep_judged(steps, no_topic, keep)
    steps.each(_require_reachable, at_once=REACHED_AT_ONCE)
    fleet.progress(f"Verifying {plural(len(steps.going), 'environment')}")
    return steps.report(steps.each(_verified, at_once=READ_AT_ONCE))


def _compare(
    steps: Steps, choice: EngineChoice, engines: Sequence[DiffEngine], *, states: bool, needs: Needs | None
) -> None:
    """Read all files and clusters, and compare all topics, beside one application of the engine.

    The engine is chosen by the topics of all environments together. Files of topics that ``needs`` names must be valid.
    """
    fleet = steps.fleet
    chosen = engine_for(choice, count_topic_files(fleet.topics) * len(fleet.runs), engines)
    fleet.progress(f"Comparing with {chosen}")

    def keep(validated: Validated, run: EnvironmentRun) -> None:
        keep_specs(run, specs_of(validated, commit), as_tables=chosen.engine.needs_tables)

    first = next(iter(fleet.runs.values()))
    with chosen.engine.beside(first.connections, fleet.progress):
        fleet.progress(f"Reading {fleet.topics}")
        prune(first.home, now=now())
        commit = commit_of_files(first.files)
        _keep_judged(steps, needs, keep)
        steps.each(_require_reachable, at_once=REACHED_AT_ONCE)
        fleet.progress(f"Reading the live topics of {plural(len(steps.going), 'environment')}")
        steps.each(partial(snapshot, states=states), at_once=READ_AT_ONCE)
        steps.each(partial(diff, engine=chosen.engine))


def _keep_judged(steps: Steps, needs: Needs | None, keep: Callable[[Validated, EnvironmentRun], None]) -> None:
    """Call ``keep`` for each run, with the files as its environment has them."""
    runs, topics = steps.fleet.runs, steps.fleet.topics
    judged = validate_each(read_tree(topics), runs, now=now(), needs=needs)
    read, named = shown_folder(topics), name_in_repository(topics)
    shown = set[Diagnostic]()
    for run, validated in zip(runs.values(), judged, strict=True):
        for diagnostic in validated.diagnostics:
            if diagnostic.is_error and diagnostic not in shown:
                shown.add(diagnostic)
                steps.fleet.progress(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.code} {diagnostic.summary}")
        if line := left_out_line(validated.left_out):
            run.progress(line)
        renamed = with_folder_named(validated, read=read, named=named)
        steps.noted(run, attempt(partial(keep, renamed), run))


def _require_reachable(run: EnvironmentRun) -> None:
    environment = read_environment(run)
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)


def _planned(run: EnvironmentRun, *, only: str | None) -> EnvironmentResult:
    plan(run, only=only)
    gate(run)
    found = run.read_plan()
    change_set = found.change_set
    names = {*run.read_desired().topics, *run.read_live().topics} if only and found.is_empty else ()
    missed = no_match(only, sorted(names)) if names else ""
    return EnvironmentResult(
        environment=run.environment,
        result=Standing.NO_MATCH if missed else _standing_of(found),
        summary=missed or summary_line(found),
        counts={
            **dict(found.action_counts.items()),
            **{word.value: len(found.with_gate(word)) for word in GateWord},
            "blocked": len(change_set.blocked),
            "drift": len(change_set.drift),
            "unmanaged": len(change_set.unmanaged),
            "paused": len(change_set.paused),
        },
        path=str(run.store.path(PLAN_FILE)),
        fingerprint=found.fingerprint,
    )


def _drifted(run: EnvironmentRun, *, only: str | None) -> EnvironmentResult:
    found = record_drift(run, only=only)
    agreed = Standing.WITHOUT_DRIFT if found.compared or only is None else Standing.NO_MATCH
    return EnvironmentResult(
        environment=run.environment,
        result=Standing.DRIFT if found.drift else agreed,
        summary=drift_summary(found),
        counts=counted(found.drift),
        path=str(run.store.path(DRIFT_FILE)),
    )


def _standing_of(found: Plan) -> Standing:
    if any(gated.gate is not GateWord.RUN for gated in found.changes):
        return Standing.HELD
    if found.change_set.blocked:
        return Standing.BLOCKED
    return Standing.CHANGES if found.changes else Standing.UNCHANGED


def _verified(run: EnvironmentRun) -> EnvironmentResult:
    ended = check_cluster(run, read_environment(run))
    return EnvironmentResult(
        environment=run.environment,
        result=Standing.HEALTHY if ended.status is ExitStatus.SUCCESS else Standing.UNHEALTHY,
        summary=headline(ended.report),
        counts={},
        path=str(run.store.path("report.txt")),
        exit_status=ended.status,
    )
