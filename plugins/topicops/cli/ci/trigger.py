"""``topicops ci trigger``: after the merge, start Airflow's pipelines at that commit, and wait for their end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.ci.shared import FOLDER, FolderArgument, RepositoryOption
from topicops.cli.output import print_result, progress
from topicops.cli.shared_options import TopicsOption
from topicops.model.exit_status import ExitStatus


def trigger_command(
    folder: FolderArgument = FOLDER,
    topics: TopicsOption = Path("topics"),
    commit: Annotated[
        str | None, typer.Option("--commit", help="The merge commit. Default: by the CI.", show_default=False)
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", help="The base branch before the merge. Default: by the CI.", show_default=False),
    ] = None,
    repository: RepositoryOption = None,
    wait_commit: Annotated[
        str, typer.Option("--wait-commit", help="How long Airflow may take to have the commit: 90s, 15m.")
    ] = "15m",
    wait_run: Annotated[str, typer.Option("--wait-run", help="How long a run may take: 90s, 2h.")] = "2h",
) -> None:
    """Hand the review's approvals to Airflow, start a run for each environment that the merge touches, follow it."""
    from topicops.flow.pull_requests.places import merge_to_trigger, trigger_of
    from topicops.flow.pull_requests.triggering import write_runs

    merge = merge_to_trigger(commit=commit, before=before)
    trigger = trigger_of(topics, repository, wait_commit=wait_commit, wait_run=wait_run, progress=progress)
    runs = trigger.start(before=merge.base, merge_commit=merge.head)
    write_runs(runs, folder)
    for run in runs.environments:
        print_result(f"{run.environment}: {run.state}: {run.sentence} {run.url}".rstrip())
    if not runs.environments:
        print_result("The merge changes no topic of any environment; no run was started.")
    failed = any(run.state in ("failed", "not started") for run in runs.environments)
    raise typer.Exit(ExitStatus.ERROR if failed else ExitStatus.SUCCESS)
