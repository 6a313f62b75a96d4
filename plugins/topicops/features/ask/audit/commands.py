"""``topicops audit``: who changed what, when and why; and whether the audit log is whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_error, print_result, print_value
from topicops.cli.shared_options import TextOrJsonOption, say_where_to_start
from topicops.model.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from topicops.features.ask.audit.audited import AuditedLines, AuditedRuns
    from topicops.model.runs.audit import AuditFile, AuditHead

app = typer.Typer(
    help="Who changed what, when and why, and what runs have found, from $TOPICOPS_HOME; opens no connection.",
    no_args_is_help=True,
)

EnvironmentOption = Annotated[
    str | None, typer.Option("--environment", "-e", help="Only this environment. Default: all.")
]
SinceOption = Annotated[str | None, typer.Option("--since", help="36h, 7d or 2026-01-31. Default: the whole log.")]


@app.command("runs")
def runs_command(
    environment: EnvironmentOption = None, since: SinceOption = None, output: TextOrJsonOption = "text"
) -> None:
    """Print every run that sent a change, oldest first."""
    from topicops.features.ask.audit.audited import AuditedRuns
    from topicops.flow.runs.memory import audit_files

    files = audit_files(environment)
    nothing = f"no run is in the audit log{f' since {since}' if since else ''}"
    _print(files, AuditedRuns.of(files, _time(since)), output, nothing)


@app.command("topic")
def topic_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic's whole name.")],
    environment: EnvironmentOption = None,
    since: SinceOption = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print every mutation of a topic, oldest first."""
    from topicops.features.ask.audit.audited import AuditedLines
    from topicops.flow.runs.memory import audit_files

    files, earliest = audit_files(environment), _time(since)
    found = AuditedLines.of(files, lambda line: line.topic == name and (earliest is None or line.at >= earliest))
    _print(files, found, output, f"no mutation of topic {name} is in the audit log")


@app.command("run")
def run_command(
    run: Annotated[str, typer.Argument(metavar="ID", help="`<group>/<run id>`, or the run id.")],
    environment: EnvironmentOption = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print every mutation of a run, oldest first."""
    from topicops.features.ask.audit.audited import AuditedLines
    from topicops.flow.runs.memory import audit_files

    files = audit_files(environment)
    found = AuditedLines.of(files, lambda line: line.is_of_run(run))
    _print(files, found, output, f"no mutation of run {run} is in the audit log")


@app.command("verify")
def verify_command(
    environment: EnvironmentOption = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="An end that was printed earlier and kept elsewhere, COUNT:HASH: the log must still contain it.",
        ),
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Check that no line was changed, removed, moved or cut off; exit status 1 when one was."""
    from topicops.features.ask.audit.audited import CheckedLogs
    from topicops.flow.runs.memory import audit_files

    files = audit_files(environment)
    checked = CheckedLogs.of(files, _noted_head(head, files))
    print_value(checked, output, CheckedLogs.text)
    if not files:
        say_where_to_start()
    if not checked.whole:
        raise typer.Exit(ExitStatus.ERROR)


def _print(files: Sequence[AuditFile], found: AuditedRuns | AuditedLines, output: str, nothing: str) -> None:
    """Print JSON, or the text; ``nothing`` stands for an empty text."""
    from topicops.model.json_types import json_text
    from topicops.model.runs.audit import are_whole

    if output == "json":
        print_result(json_text(found))
    elif text := found.text():
        print_result(text)
    else:
        print_error(nothing)
    if not files:
        say_where_to_start()
    if not are_whole(files):
        print_error("the audit log is not whole: see `topicops audit verify`")


def _time(since: str | None) -> datetime | None:
    from topicops.steps.clocks import since_time

    return since_time(since, datetime.now(UTC)) if since is not None else None


def _noted_head(text: str | None, files: Sequence[AuditFile]) -> AuditHead | None:
    from topicops.model.runs.audit import head_of

    if text is None:
        return None
    if len(files) != 1:
        raise UsageError("--head is the end of one log: name its environment with --environment")
    if (noted := head_of(text)) is None:
        raise UsageError(f"--head {text!r}: write it as `topicops audit verify` shows it, COUNT:HASH")
    return noted
