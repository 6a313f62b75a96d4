"""Commands for several environments: ``plan``, ``drift`` and ``verify`` call these functions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from topicops.cli.output import new_run_id, print_value, progress, shown_path
from topicops.cli.shared_options import Format
from topicops.features.fleet.values import PENDING, FleetReport, fleet_markdown, fleet_text
from topicops.model.errors import ArtifactError, ExitStatus

if TYPE_CHECKING:
    from topicops.features.fleet.fleet import Fleet
    from topicops.flow.runs.run import EngineChoice
    from topicops.flow.runs.values import RunMode


def environments_of(topics: Path, named: Sequence[str]) -> tuple[str, ...]:
    """Give the environments that a command line names, as ``fleet.environments_of``."""
    from topicops.features.fleet import fleet

    return fleet.environments_of(topics, named)


def plan(
    named: Sequence[str],
    topics: Path,
    *,
    engine: EngineChoice,
    states: bool,
    only: str | None,
    out: Path | None,
    detailed_exitcode: bool,
    output: Format,
) -> NoReturn:
    """Plan each environment, and end the command."""
    from topicops.features.fleet.fleet import plan_fleet
    from topicops.plugged import ENGINES

    fleet = new_fleet(named, topics)
    report = plan_fleet(fleet, engine=engine, engines=ENGINES, states=states, only=only)
    end(fleet, report, output, out=out, detailed_exitcode=detailed_exitcode)


def drift(
    named: Sequence[str],
    topics: Path,
    *,
    engine: EngineChoice,
    only: str | None,
    detailed_exitcode: bool,
    output: Format,
) -> NoReturn:
    """Show where each cluster differs from the files, and end the command."""
    from topicops.features.fleet.fleet import drift_fleet
    from topicops.plugged import ENGINES

    fleet = new_fleet(named, topics)
    report = drift_fleet(fleet, engine=engine, engines=ENGINES, only=only)
    end(fleet, report, output, mode="drift", detailed_exitcode=detailed_exitcode)


def verify(named: Sequence[str], topics: Path, *, output: Format) -> NoReturn:
    """Check every topic of each cluster, and end the command."""
    from topicops.features.fleet.fleet import verify_fleet

    fleet = new_fleet(named, topics)
    end(fleet, verify_fleet(fleet), output)


def new_fleet(environments: Sequence[str], topics: Path) -> Fleet:
    """Open a run whose progress goes to stderr."""
    from topicops.features.fleet.fleet import open_fleet

    fleet = open_fleet(environments, topics=topics, group="cli", run_id=new_run_id(), progress=progress)
    progress(f"Keeping this run's files in {shown_path(fleet.store.folder)}")
    return fleet


def end(
    fleet: Fleet,
    report: FleetReport,
    output: Format,
    *,
    mode: RunMode | None = None,
    out: Path | None = None,
    detailed_exitcode: bool = False,
) -> NoReturn:
    """Write ``<environment>.json`` of each into ``out``, print the table, and end with the worst exit status of all.

    Raises ``ArtifactError`` where ``out`` cannot be written.
    """
    from topicops.plugged import after_task

    for run in fleet.runs_of(report):
        after_task(run, mode=mode)
    try:
        for result in report.environments if out else ():
            if out and result.path:
                out.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(result.path, out / f"{result.environment}.json")
    except OSError as error:
        raise ArtifactError(f"{out}: cannot be written: {error.strerror}") from error
    print_value(report, output, fleet_text, fleet_markdown)
    status = ExitStatus(report.exit_status)
    if detailed_exitcode and status is ExitStatus.SUCCESS and PENDING & report.counts.keys():
        status = ExitStatus.CHANGES_PENDING
    raise typer.Exit(status)
