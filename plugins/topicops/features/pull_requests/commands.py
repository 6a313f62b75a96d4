"""``topicops ci``: what the jobs of a pull request run. Other modules of the feature are imported when needed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import new_run_id, print_error, print_result, progress
from topicops.cli.shared_options import TopicsOption
from topicops.model.errors import ArtifactError, ExitStatus, UsageError
from topicops.model.printable import plural

app = typer.Typer(
    name="ci", help="What the jobs of a pull request run: on GitHub, GitLab, or by hand.", no_args_is_help=True
)
FOLDER = Path("pull-request")

FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="[FOLDER]", help="Where `ci plan` and `ci trigger` leave their files for later commands."),
]
NumberOption = Annotated[int | None, typer.Option("--number", help="Of the pull request. Default: by the CI.")]
RepositoryOption = Annotated[
    str | None, typer.Option("--repository", help="acme/topics on GitHub or GitLab. Default: by the CI.")
]


@app.command("validate")
def validate_command(
    topics: TopicsOption = Path("topics"),
    since: Annotated[
        str | None, typer.Option("--since", help="A commit or branch: what it has is old. Default: by the CI.")
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"] | None,
        typer.Option("--format", help="text, json, or github annotations. Default: by the CI."),
    ] = None,
) -> None:
    """Check every file. What the branch brings is shown in full; what was wrong before is counted. No connection."""
    from topicops.features.pull_requests.branches import validate_change
    from topicops.features.pull_requests.edges.surroundings import surroundings_of
    from topicops.flow.spec_files import shown_diagnostics
    from topicops.steps.reporting.diagnostics_text import annotation, counts_line, diagnostics_json

    started = time.monotonic()
    since = since or surroundings_of(os.environ).base_commit
    if since is None:
        raise UsageError("name what the branch began from, as in: --since origin/main")
    found = validate_change(topics, since=since)
    counts = counts_line(found.brought, files=found.files, took_s=time.monotonic() - started)
    match output or ("github" if os.environ.get("GITHUB_ACTIONS") == "true" else "text"):
        case "json":
            print_result(diagnostics_json(found.brought, files=found.files))
        case "github":
            print_result("\n".join([*map(annotation, found.brought), counts]))
        case _:
            print_result("\n".join([*([shown_diagnostics(found.brought)] if found.brought else []), counts]), "text")
    if old := sum(problem.is_error for problem in found.old):
        print_error(f"{plural(old, 'error')} from before this branch, in other files; `topicops validate` lists all")
    raise typer.Exit(ExitStatus.ERROR if any(p.is_error for p in found.brought) else ExitStatus.SUCCESS)


@app.command("plan")
def plan_command(
    folder: FolderArgument = FOLDER,
    topics: TopicsOption = Path("topics"),
    environment: Annotated[
        list[str] | None, typer.Option("--environment", "-e", help="May be repeated. Default: all that are touched.")
    ] = None,
    base: Annotated[str | None, typer.Option("--base", help="Commit of the base branch. Default: by the CI.")] = None,
    head: Annotated[str | None, typer.Option("--head", help="Newest commit of the branch. Default: by the CI.")] = None,
    number: NumberOption = None,
) -> None:
    """Plan the merge of base and branch by the policy of the base. The branch is read as data; no cluster changes."""
    from topicops.features.pull_requests.edges.surroundings import surroundings_of
    from topicops.features.pull_requests.planning import Planning, plan_pull_request, write_planned
    from topicops.flow.runs.run import home_folder
    from topicops.plugged import moves
    from topicops.steps.reporting.plan_document import plan_text

    found = surroundings_of(os.environ)
    if (head := head or found.head_commit) is None:
        raise UsageError("name the branch's newest commit: --head; this is no job of GitHub Actions or GitLab CI")
    planning = Planning(
        number=number or found.number,
        only=frozenset(environment or ()),
        run_id=new_run_id(),
        home=home_folder(),
        progress=progress,
        moves=moves(),
    )
    planned = plan_pull_request(topics, base=base or "HEAD", head=head, planning=planning)
    write_planned(planned, folder)
    summary = planned.summary
    for remark in summary.remarks:
        print_error(remark)
    for entry in summary.environments:
        print_result(plan_text(planned.plans[entry.environment]) if not entry.problem else "", "text")
        if entry.problem:
            print_error(f"{entry.environment}: {entry.problem}")
    if summary.problem:
        print_error(summary.problem)
    elif not summary.environments and not summary.remarks:
        print_result("The pull request changes no topic of any environment.")
    has_problem = summary.problem or any(entry.problem for entry in summary.environments)
    raise typer.Exit(ExitStatus.ERROR if has_problem else ExitStatus.SUCCESS)


@app.command("comment")
def comment_command(
    folder: FolderArgument = FOLDER, number: NumberOption = None, repository: RepositoryOption = None
) -> None:
    """Write what `ci plan` found into the pull request: one comment for each environment, edited on later runs."""
    from topicops.features.pull_requests.commenting import conversation_about, post_comments
    from topicops.features.pull_requests.planning import read_planned

    planned = read_planned(folder)
    conversation = conversation_about(number or planned.summary.number, repository, progress=progress)
    written = post_comments(planned, conversation)
    print_result(f"{plural(written, 'environment')} in the comments of {conversation.name}")


@app.command("status")
def status_command(
    folder: FolderArgument = FOLDER,
    number: NumberOption = None,
    repository: RepositoryOption = None,
    unplanned: Annotated[
        str | None,
        typer.Option("--unplanned", help="There is no plan on purpose, for this reason: the check is neutral."),
    ] = None,
    started: Annotated[
        bool, typer.Option("--started", help="The plan is being made: the check is in progress, and nobody may merge.")
    ] = False,
) -> None:
    """Set the check and the label by the highest risk. A held change is neutral, with the way to approve it."""
    from topicops.features.pull_requests.checks import set_check, set_plain_check, set_unplanned_check
    from topicops.features.pull_requests.commenting import conversation_about
    from topicops.features.pull_requests.edges.forge import CheckResult, ForgeError
    from topicops.features.pull_requests.planning import read_planned

    conversation = conversation_about(number, repository, progress=progress)
    try:
        if started:
            check = set_plain_check(CheckResult.PENDING, "The plan is being made", conversation)
        elif unplanned:
            check = set_unplanned_check(unplanned, conversation)
        else:
            check = set_check(read_planned(folder), conversation)
    except (ArtifactError, ForgeError) as error:  # the check reports in any case, because a merge may wait for it
        check = set_plain_check(CheckResult.FAILURE, str(error), conversation)
    print_result(f"{check.result}: {check.title}")
    raise typer.Exit(ExitStatus.ERROR if check.result is CheckResult.FAILURE else ExitStatus.SUCCESS)


@app.command("trigger")
def trigger_command(
    folder: FolderArgument = FOLDER,
    topics: TopicsOption = Path("topics"),
    commit: Annotated[str | None, typer.Option("--commit", help="The merge commit. Default: by the CI.")] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", help="The base branch before the merge. Default: by the CI, else the first parent."),
    ] = None,
    repository: RepositoryOption = None,
    wait_commit: Annotated[
        str, typer.Option("--wait-commit", help="How long Airflow may take to have the commit: 90s, 15m.")
    ] = "15m",
    wait_run: Annotated[str, typer.Option("--wait-run", help="How long a run may take: 90s, 2h.")] = "2h",
) -> None:
    """Hand the review's approvals to Airflow, start a run for each environment that the merge touches, follow it."""
    from topicops.features.pull_requests.edges.surroundings import surroundings_of
    from topicops.features.pull_requests.triggering import trigger_of, write_runs

    found = surroundings_of(os.environ)
    merge_commit = commit or found.head_commit or "HEAD"
    trigger = trigger_of(topics, repository, wait_commit=wait_commit, wait_run=wait_run, progress=progress)
    runs = trigger.start(before=before or found.base_commit or f"{merge_commit}^1", merge_commit=merge_commit)
    write_runs(runs, folder)
    for run in runs.environments:
        print_result(f"{run.environment}: {run.state}: {run.sentence} {run.url}".rstrip())
    if not runs.environments:
        print_result("The merge changes no topic of any environment; no run was started.")
    failed = any(run.state in ("failed", "not started") for run in runs.environments)
    raise typer.Exit(ExitStatus.ERROR if failed else ExitStatus.SUCCESS)


@app.command("report")
def report_command(folder: FolderArgument = FOLDER, repository: RepositoryOption = None) -> None:
    """Write what `ci trigger` saw into the pull request: applied, verified, held or failed, with links to the runs."""
    from topicops.features.pull_requests.checks import report_runs
    from topicops.features.pull_requests.commenting import conversation_about
    from topicops.features.pull_requests.triggering import read_runs

    runs = read_runs(folder)
    if runs.number is None:
        print_result("The commit came without a pull request; there is no comment to edit.")
        return
    conversation = conversation_about(runs.number, repository, progress=progress)
    check = report_runs(runs, conversation)
    print_result(f"{conversation.name}: {check.result}: {check.title}")


@app.command("codeowners")
def codeowners_command(
    topics: TopicsOption = Path("topics"),
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Renew the lines of topicops in this file; all other lines stay."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="With --write: change nothing, and end with exit status 1 if the file is not up to date."
        ),
    ] = False,
) -> None:
    """Print a line for each folder and topic with its reviewers, as owners.yaml names them for the topic's owner."""
    from topicops.features.pull_requests.owners import code_owners_of, renew_code_owners

    text = code_owners_of(topics)
    if write is None:
        print_result(text.rstrip("\n"))
        return
    is_new = renew_code_owners(write, text, check=check)
    if is_new and check:
        print_error(f"{write}: not up to date; run topicops ci codeowners --write {write}")
        raise typer.Exit(ExitStatus.ERROR)
    print_result(f"{write}: {'written' if is_new else 'is up to date'}")
