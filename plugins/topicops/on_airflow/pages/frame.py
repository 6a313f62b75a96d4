"""Shared by both pages: the head of the page, and a sentence where there is nothing to show."""

from __future__ import annotations

from topicops.on_airflow.pages.reading import RunOf
from topicops.steps.reporting.markup import Html, tag


def heading(title: str, run: RunOf) -> Html:
    """The head names the run, because the iframe may show another run than the page around it."""
    about = tag("p", tag("code", run.dag_id), " ", tag("code", run.run_id), cls="muted")
    return tag("header", tag("h1", title), about)


def nothing(run: RunOf, sentence: str) -> Html:
    if run.environment is None:
        return tag("p", "This is no DAG of topicops: there is nothing to show.", cls="empty")
    return tag("p", sentence, cls="empty")


def problem_box(problem: str) -> Html:
    return tag("p", problem, cls="card bad", role="alert")
