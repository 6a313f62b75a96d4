"""What commands share when they are about several environments."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from topicops.cli.output import new_run_id, print_result, progress, shown_path
from topicops.cli.shared_options import Format
from topicops.model.errors import ArtifactError
from topicops.model.exit_status import ExitStatus
from topicops.model.runs.fleet import FleetReport

if TYPE_CHECKING:
    from topicops.flow.fleet import Fleet


def several(named: Sequence[str], topics: Path) -> tuple[str, ...]:
    """The environments of the command line if it names several, or ``all``; empty if it names one."""
    from topicops import flow

    if set(named) - {"all"} and len(set(named)) == 1:
        return ()
    found = flow.environments_of(topics, named)
    return () if found == ("all",) else found


def new_fleet(environments: Sequence[str], topics: Path) -> Fleet:
    """A run whose progress goes to stderr."""
    from topicops import flow

    fleet = flow.open_fleet(environments, topics=topics, group="cli", run_id=new_run_id(), progress=progress)
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
    from topicops.steps.reporting.runs.fleet_text import fleet_json, fleet_markdown, fleet_text

    print_result({"text": fleet_text, "json": fleet_json, "markdown": fleet_markdown}[output](report))
    status = report.exit_status
    if detailed_exitcode and status is ExitStatus.SUCCESS and report.is_pending:
        status = ExitStatus.CHANGES_PENDING
    raise typer.Exit(status)
