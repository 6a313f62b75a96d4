"""Commands for several environments: ``plan``, ``drift`` and ``verify`` call these functions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from topicops.cli.output import new_run_id, print_result, progress, shown_path
from topicops.cli.shared_options import Format
from topicops.features.fleet.values import FleetReport
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
    _note(fleet, report)
    if out is not None:
        copy_results(report, out)
    end(report, output, detailed_exitcode=detailed_exitcode)


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
    _note(fleet, report, mode="drift")
    end(report, output, detailed_exitcode=detailed_exitcode)


def verify(named: Sequence[str], topics: Path, *, output: Format) -> NoReturn:
    """Check every topic of each cluster, and end the command."""
    from topicops.features.fleet.fleet import verify_fleet

    fleet = new_fleet(named, topics)
    report = verify_fleet(fleet)
    _note(fleet, report)
    end(report, output)


def _note(fleet: Fleet, report: FleetReport, *, mode: RunMode | None = None) -> None:
    from topicops.features.fleet.fleet import runs_of
    from topicops.plugged import after_task

    for run in runs_of(fleet, report):
        after_task(run, mode=mode)


def new_fleet(environments: Sequence[str], topics: Path) -> Fleet:
    """A run whose progress goes to stderr."""
    from topicops.features.fleet.fleet import open_fleet

    fleet = open_fleet(environments, topics=topics, group="cli", run_id=new_run_id(), progress=progress)
    progress(f"Keeping this run's files in {shown_path(fleet.store.folder)}")
    return fleet


def copy_results(report: FleetReport, folder: Path) -> None:
    """``<folder>/<environment>.json``. Raises ``ArtifactError``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for result in report.environments:
            if result.path is not None:
                shutil.copyfile(result.path, folder / f"{result.environment}.json")
    except OSError as error:
        raise ArtifactError(f"{folder}: cannot be written: {error.strerror}") from error


def end(report: FleetReport, output: Format, *, detailed_exitcode: bool = False) -> NoReturn:
    """Print the table, and end with the worst exit status of all environments."""
    from topicops.features.fleet.text import fleet_json, fleet_markdown, fleet_text

    print_result({"text": fleet_text, "json": fleet_json, "markdown": fleet_markdown}[output](report))
    status = report.exit_status
    if detailed_exitcode and status is ExitStatus.SUCCESS and report.is_pending:
        status = ExitStatus.CHANGES_PENDING
    raise typer.Exit(status)
