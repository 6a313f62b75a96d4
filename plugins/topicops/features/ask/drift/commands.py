"""``topicops drift``: where the live cluster differs from the files, and since when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.fleets import FLEETS, several
from topicops.cli.output import print_result, print_value, print_warnings
from topicops.cli.shared_options import (
    DetailedExitcodeOption,
    EngineOption,
    EnvironmentsOption,
    TextOrJson,
    TextOrJsonOption,
    TopicsOption,
    all_environments,
    run_of,
)
from topicops.model.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.steps.planning.diff import DriftReport


def drift_command(
    environment: EnvironmentsOption = None,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Compare only topics whose name matches this glob.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="From the history: when each difference began and ended. 36h, 7d, 2026-01-31."),
    ] = None,
    engine: EngineOption = "auto",
    detailed_exitcode: DetailedExitcodeOption = False,
    output: TextOrJsonOption = "text",
) -> None:
    """Show where the live cluster differs from the files, or since when. Nothing is written to the cluster."""
    environments = all_environments(environment, topics)
    named = several(environments, topics)
    if since is not None:
        if named:
            raise UsageError("--since: name one environment")
        is_there = _differed_since(environments[0], since, only, output)
    elif named:
        FLEETS[0].take(
            "drift", named, topics, output=output, engine=engine, only=only, detailed_exitcode=detailed_exitcode
        )
    else:
        is_there = _differs_now(environments[0], topics, only, output)
    if detailed_exitcode and is_there:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)


def _differed_since(environment: str, since: str, only: str | None, output: TextOrJson) -> bool:
    from topicops.plugged import SINCE

    if not SINCE:
        raise UsageError("--since: this installation of topicops keeps no history")
    found, warnings, is_there = SINCE[0](environment, since, only, as_json=output == "json")
    print_warnings(warnings)
    print_result(found)
    return is_there


def _differs_now(environment: str, topics: Path, only: str | None, output: TextOrJson) -> bool:
    from topicops.steps.planning.diff import drift_lines, drift_summary

    found = live_drift(run_of(environment, topics), only=only)
    if only is not None and not found.compared and not found.drift:
        raise UsageError(
            f"--only {only} matches no topic that the files describe or that is live; write *{only}* for a part"
        )
    lines = [*drift_lines(found.drift), ""] if found.drift else []
    print_value(found, output, lambda found: "\n".join([*lines, drift_summary(found)]))
    return bool(found.drift)


def live_drift(run: EnvironmentRun, *, only: str | None = None) -> DriftReport:
    """Say where the live cluster differs from the files. Raises ``WrongTargetError`` for another cluster."""
    from topicops.flow.runs.access import read_live_topics
    from topicops.flow.runs.files import read_needed_specs
    from topicops.flow.runs.guards import known_lost_topics
    from topicops.steps.planning.diff import drift
    from topicops.steps.planning.only import needs_of
    from topicops.steps.specs.needed import no_topic

    run.progress(f"Reading {run.topics}")
    environment, desired = read_needed_specs(run.files, needs_of(only) or no_topic, run.progress).require()
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(run.access(environment))
    lost = known_lost_topics(run.home, run.environment, live, desired)
    return drift(desired, replace(live, lost=lost), environment, only=only)
