"""A plan and a finished run as a person, or a program, reads them."""

from __future__ import annotations

from typing import Literal

from topicops.flow.run import Run
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_to_json

Format = Literal["text", "json", "markdown"]
REPORT_FILES = {"text": "report.txt", "json": "report.json", "markdown": "report.md"}


def render(plan: Plan, output: Format) -> str:
    match output:
        case "text":
            from topicops.steps.reporting.plans.plan_text import plan_text

            return plan_text(plan)
        case "markdown":
            from topicops.steps.reporting.plans.plan_markdown import plan_markdown

            return plan_markdown(plan)
        case "json":
            return plan_to_json(plan)


def render_report(run: Run, output: Format) -> str:
    """The report that the run has written. Raises ``ArtifactError`` when it wrote none."""
    return run.store.read_text(REPORT_FILES[output]).rstrip("\n")
