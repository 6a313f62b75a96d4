"""How old the facts of a page are, and what happened since: one rule for each page of an environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from topicops.features.topic_pages.later import LaterRun
from topicops.features.topic_pages.on_airflow.reading import Indexed
from topicops.flow.runs.run import now
from topicops.model.printable import plural
from topicops.on_airflow.pages.airflow_dag import AirflowDag, AirflowRun, not_fetched_since
from topicops.steps.reporting.markup import Html, tag, together

A_RUN_GOES_ON = "a run goes on"
OVERDUE_AFTER = timedelta(minutes=10)


class News(NamedTuple):
    """Something that a reader must know before the facts of a page."""

    tone: str
    """``bad`` or ``warn``."""
    words: str
    """For a list of environments: a few words."""
    sentence: Html


def news(indexed: Indexed, below: str) -> Iterator[News]:
    """Yield why what follows may not be so any more, and what keeps newer facts away; the gravest first.

    Args:
        below: What leads from the page to Airflow's own pages.
    """
    pipeline = indexed.pipeline
    runs = [dag.newest for dag in indexed.dags.values() if dag.newest and _is_newer(dag.newest, indexed)]
    for run in runs:
        if run.state == "failed":
            yield News("bad", "newest run failed", _failed(run, indexed, below))
    if pipeline and pipeline.is_gone:
        said = f"Airflow does not have {pipeline.dag_id} any more: its file is gone or cannot be read. No run comes."
        yield News("bad", "DAG gone", together(said))
    if indexed.later_problem:
        said = f"Nobody can say what was changed since: {indexed.later_problem}"
        yield News("bad", "changes not known", together(said))
    if indexed.is_unreadable:
        yield News("bad", "facts not readable", together(indexed.problem))
    for later in indexed.later:
        yield News("warn", "changed since", _sent(later, below))
    for run in runs:
        if run.goes_on:
            yield News("warn", A_RUN_GOES_ON, _goes_on(run, below))
    yield from _keeps_away(pipeline)


def _keeps_away(pipeline: AirflowDag | None) -> Iterator[News]:
    if pipeline is None:
        return
    if pipeline.is_paused:
        yield News("warn", "paused", together(f"{pipeline.dag_id} is paused, so no run comes. Unpause it in Airflow."))
    elif _is_overdue(pipeline) and pipeline.next_run_at:
        said = f"A run was due at {moment(pipeline.next_run_at)} and has not come. Look at Airflow's scheduler."
        yield News("bad", "run overdue", together(said))
    if fetched := not_fetched_since(pipeline):
        said = (
            f"The files may be old: Airflow fetched them last at {moment(fetched)}. See the log of the DAG processor."
        )
        yield News("bad", "files old", together(said))


def _is_overdue(pipeline: AirflowDag) -> bool:
    """A run that goes on keeps the next one waiting: then none is overdue."""
    if pipeline.next_run_at is None or (pipeline.newest and pipeline.newest.goes_on):
        return False
    return now() - pipeline.next_run_at > OVERDUE_AFTER


def _is_newer(run: AirflowRun, indexed: Indexed) -> bool:
    """Whether it may know more than the facts: it read them and is not over well, or it came after them."""
    head = indexed.head
    if head is None or run.name == head.run:
        return True
    began = run.started_at
    return run.goes_on or began is None or began > head.known_at


def _failed(run: AirflowRun, indexed: Indexed, below: str) -> Html:
    when = f" at {moment(run.ended_at)}" if run.ended_at else ""
    older = ": what follows may be older than what it did" if indexed.head else ""
    return together("The newest run, ", run_link(run.name, below), f", failed{when}{older}. See its Plan tab.")


def _goes_on(run: AirflowRun, below: str) -> Html:
    return together("A run goes on: ", run_link(run.name, below), ". What it does is not in these facts yet.")


def _sent(later: LaterRun, below: str) -> Html:
    counts = Counter(later.outcomes.values())
    said = ", ".join(f"{count:,} {status.value}" for status, count in counts.items())
    sent = f"sent changes of {plural(len(later.outcomes), 'topic')}" if later.outcomes else "may have sent changes"
    when = f"; the last answer came at {moment(later.last_at)}" if later.last_at else ""
    end = " It still sends, or it ended in the middle." if later.is_open else ""
    return together(
        "What follows is older than the changes of ", run_link(later.run, below), f" ({later.environment}): it "
        f"{sent}{f' ({said})' if said else ''}{when}.{end}",
    )  # fmt: skip


def run_link(name: str, below: str) -> Html:
    """To the page of a run in Airflow; a run of the shell has none."""
    dag_id, _, run_id = name.partition("/")
    if dag_id == "cli":
        return tag("code", name)
    return tag("a", run_id, href=f"{below}dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}", cls="airflow")


def moment(at: datetime) -> str:
    """With its age, because a time alone must be compared with the clock first."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({age(at)})"


def age(at: datetime) -> str:
    """``now``, ``12 min ago``, ``3 h ago``, ``5 days ago``; of a time to come ``in 12 min``."""
    seconds = (now() - at).total_seconds()
    count = abs(seconds)
    if count < 60:
        return "now"
    said = f"{count / 60:.0f} min" if count < 5400 else f"{count / 3600:.0f} h" if count < 129600 else _days(count)
    return f"{said} ago" if seconds > 0 else f"in {said}"


def _days(seconds: float) -> str:
    return plural(round(seconds / 86400), "day")
