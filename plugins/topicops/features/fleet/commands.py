"""Commands for several environments: ``plan``, ``drift`` and ``verify`` call this function."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from topicops.cli.output import new_run_id, print_value, progress, shown_path
from topicops.cli.shared_options import FleetStep, Format
from topicops.model.errors import ArtifactError, ExitStatus

if TYPE_CHECKING:
    from topicops.model.choices import EngineChoice


def environments_of(topics: Path, named: Sequence[str]) -> tuple[str, ...]:
    """Give the environments that a command line names, as ``fleet.environments_of``."""
    from topicops.features.fleet import fleet

    return fleet.environments_of(topics, named)


def take(
    step: FleetStep,
    named: Sequence[str],
    topics: Path,
    *,
    output: Format,
    engine: EngineChoice = "auto",
    states: bool = False,
    only: str | None = None,
    out: Path | None = None,
    detailed_exitcode: bool = False,
) -> NoReturn:
    """Take the step for each environment, print the table, and end with the worst exit status of all.

    Writes ``<environment>.json`` of each into ``out``. Raises ``ArtifactError`` where that cannot be written.
    """
    from topicops.features.fleet.fleet import drift_fleet, open_fleet, plan_fleet, verify_fleet
    from topicops.features.fleet.values import PENDING, fleet_markdown, fleet_text
    from topicops.plugged import ENGINES, after_task, moves

    fleet = open_fleet(named, topics=topics, group="cli", run_id=new_run_id(), progress=progress, moves=moves())
    progress(f"Keeping this run's files in {shown_path(fleet.store.folder)}")
    match step:
        case "plan":
            report = plan_fleet(fleet, engine=engine, engines=ENGINES, states=states, only=only)
        case "drift":
            report = drift_fleet(fleet, engine=engine, engines=ENGINES, only=only)
        case "verify":
            report = verify_fleet(fleet)
    for run in fleet.runs_of(report):
        after_task(run, mode="drift" if step == "drift" else None)
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
