"""The group ``topicops ci``."""

from __future__ import annotations

import typer

from topicops.cli.ci.codeowners import codeowners_command
from topicops.cli.ci.comment import comment_command, status_command
from topicops.cli.ci.plan import plan_command
from topicops.cli.ci.report import report_command
from topicops.cli.ci.trigger import trigger_command
from topicops.cli.ci.validate import validate_command

app = typer.Typer(
    name="ci",
    help="What the jobs of a pull request run: on GitHub, GitLab, or by hand.",
    no_args_is_help=True,
)
app.command("validate")(validate_command)
app.command("plan")(plan_command)
app.command("comment")(comment_command)
app.command("status")(status_command)
app.command("trigger")(trigger_command)
app.command("report")(report_command)
app.command("codeowners")(codeowners_command)
