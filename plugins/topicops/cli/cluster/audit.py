"""``topicops audit``: who changed what, when and why; and whether the audit log is whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import TextOrJsonOption
from topicops.model.errors import UsageError
from topicops.model.exit_status import ExitStatus

if TYPE_CHECKING:
    from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine

app = typer.Typer(
    name="audit",
    help="Who changed what, when and why, from $TOPICOPS_HOME/audit; opens no connection.",
    no_args_is_help=True,
)

EnvironmentOption = Annotated[
    str | None,
    typer.Option("--environment", "-e", help="Only this environment. Default: all.", show_default=False),
]


SinceOption = Annotated[
    str | None, typer.Option("--since", help="36h, 7d or 2026-01-31. Default: the whole log.", show_default=False)
]


@app.command("runs")
def runs_command(
    environment: EnvironmentOption = None,
    since: SinceOption = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print every run that sent a change, oldest first."""
    from topicops.flow import audit_files
    from topicops.steps.audit_queries import is_whole, runs_of
    from topicops.steps.reporting.runs.audit_text import audit_runs_json, audit_runs_text

    files, earliest = audit_files(environment), _time(since)
    runs = [lines for lines in runs_of(files) if earliest is None or lines[-1].at >= earliest]
    if output == "json":
        print_result(audit_runs_json(runs))
    elif runs:
        print_result(audit_runs_text(runs))
    else:
        print_error("no run is in the audit log" + (f" since {since}" if since else ""))
    if not is_whole(files, None):
        print_error("the audit log is not whole: see `topicops audit verify`")


@app.command("topic")
def topic_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic's whole name.")],
    environment: EnvironmentOption = None,
    since: SinceOption = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print every mutation of a topic, oldest first."""
    from topicops.flow import audit_files
    from topicops.steps.audit_queries import later_than, of_topic

    files = audit_files(environment)
    _print_lines(files, later_than(of_topic(files, name), _time(since)), f"topic {name}", output)


@app.command("run")
def run_command(
    run: Annotated[str, typer.Argument(metavar="ID", help="`<group>/<run id>`, or the run id.")],
    environment: EnvironmentOption = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print every mutation of a run, oldest first."""
    from topicops.flow import audit_files
    from topicops.steps.audit_queries import of_run

    files = audit_files(environment)
    _print_lines(files, of_run(files, run), f"run {run}", output)


@app.command("verify")
def verify_command(
    environment: EnvironmentOption = None,
    head: Annotated[
        str | None,
        typer.Option("--head", help="The end that was shown earlier: COUNT:HASH.", show_default=False),
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Check that no line was changed, removed, moved or cut off; exit status 1 when one was."""
    from topicops.flow import audit_files
    from topicops.steps.audit_queries import is_whole
    from topicops.steps.reporting.runs.audit_text import verification_json, verification_text

    files = audit_files(environment)
    noted = _noted_head(head, files)
    print_result(verification_json(files, noted) if output == "json" else verification_text(files, noted))
    if not is_whole(files, noted):
        raise typer.Exit(ExitStatus.ERROR)


def _print_lines(files: Sequence[AuditFile], lines: Sequence[AuditLine], about: str, output: str) -> None:
    from topicops.steps.audit_queries import is_whole
    from topicops.steps.reporting.runs.audit_text import audit_lines_json, audit_lines_text

    if output == "json":
        print_result(audit_lines_json(lines))
    elif lines:
        print_result(audit_lines_text(lines))
    else:
        print_error(f"no mutation of {about} is in the audit log")
    if not is_whole(files, None):
        print_error("the audit log is not whole: see `topicops audit verify`")


def _time(since: str | None) -> datetime | None:
    from topicops.model.times import since_time

    return None if since is None else since_time(since, datetime.now(UTC))


def _noted_head(text: str | None, files: Sequence[AuditFile]) -> AuditHead | None:
    from topicops.model.runs.audit import head_of

    if text is None:
        return None
    if len(files) != 1:
        raise UsageError("--head is the end of one log: name its environment with --environment")
    noted = head_of(text)
    if noted is None:
        raise UsageError(f"--head {text!r}: write it as `topicops audit verify` shows it, COUNT:HASH")
    return noted
