"""Around each Topics page: whose topics, the way to the other pages, how old the facts are, what happened since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from topicops.features.topic_pages.later import LaterRun
from topicops.features.topic_pages.on_airflow.reading import Indexed
from topicops.features.topic_pages.values import IndexHead, Word
from topicops.flow.runs.run import now
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import plural
from topicops.on_airflow.pages.airflow_state import AirflowDag, AirflowRun
from topicops.on_airflow.pages.parts import BELOW, chip, empty, muted, page, run_link, with_query
from topicops.steps.reporting.markup import Html, pill, tag, together

TONES: Mapping[Word, str] = {
    "offline": "bad", "under min ISR": "bad", "deleted outside git": "bad", "change failed": "bad", "refused": "bad",
    "under-replicated": "warn", "blocked": "bad", "held": "warn", "rejected": "bad", "missing": "warn",
    "different": "warn", "to delete": "warn", "skipped": "warn", "changed since": "warn", "being deleted": "warn",
    "moving": "calm", "paused": "calm", "unmanaged": "calm", "healthy": "good",
}  # fmt: skip
"""Colour of each state, the gravest first."""
_PAGES = {"topics": "Topics", "brokers": "Brokers"}
A_RUN_GOES_ON = "a run goes on"
OVERDUE_AFTER = timedelta(minutes=10)


def topics_document(title: str, indexed: Indexed, here: str, *content: Html | None) -> str:
    """Give the whole page; ``here`` is its address, empty for one that has no link of its own."""
    links = [chip(name, address, is_set="page" if address == here else "") for address, name in _PAGES.items()]
    others = chip("all environments", "../../topics")
    head = tag(
        "header",
        tag("h1", title),
        tag("nav", tag("span", tag("strong", indexed.environment)), *links, others, cls="chips", aria_label="Pages"),
        _as_of(indexed.head) if indexed.head else None,
        *(tag("p", found.sentence, cls=f"card {found.tone}") for found in news(indexed, BELOW)),
    )
    body = content if indexed.head else (empty(indexed.problem),)
    return page(f"{title}: {indexed.environment}", head, *body)


def _as_of(head: IndexHead) -> Html:
    run = run_link(head.run, BELOW)
    same = f"; a run found the same at {moment(head.looked_at)}" if head.looked_at else ""
    commit: list[Html | str] = [", files of ", tag("code", head.commit[:12])] if head.commit else []
    return muted(f"As read at {moment(head.read_at)} by run ", run, *commit, f"{same}.")


def words(found: Iterable[Word]) -> Html:
    """Show the states of a topic as pills, the gravest first."""
    there = set(found)
    return together(*(together(pill(word, tone), " ") for word, tone in TONES.items() if word in there))


def broker_link(broker: int, live: ClusterSnapshot) -> Html:
    gone = "" if broker in live.brokers else " (not registered)"
    return tag("a", f"{broker}{gone}", href=f"broker?id={broker}", cls=None if not gone else "final")


def pager(address: str, asked: dict[str, str], *, first: int, most: int, found: int) -> Html | None:
    """Link the page before and the page after."""
    if found <= most and not first:
        return None

    def link(name: str, start: int) -> Html:
        return chip(name, with_query(address, {**asked, "first": start or ""}))

    parts = [
        link("← before", max(0, first - most)) if first else None,
        tag("span", f"{min(first + 1, found):,} to {min(first + most, found):,} of {found:,}", cls="muted"),
        link("next →", first + most) if first + most < found else None,
    ]
    return tag("nav", *parts, cls="chips", aria_label="Pages of the list")


# ---- how old the facts are, and what happened since ----


class News(NamedTuple):
    """Something that a reader must know before the facts of a page."""

    tone: str
    """``bad`` or ``warn``."""
    words: str
    """Few words for a list of environments."""
    sentence: Html


def news(indexed: Indexed, below: str) -> Iterator[News]:
    """Yield why what follows may not be so any more, and what keeps newer facts away; the gravest first."""
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
            said = "What it does is not in these facts yet."
            yield News("warn", A_RUN_GOES_ON, together("A run goes on: ", run_link(run.name, below), f". {said}"))
    yield from _keeps_away(pipeline)


def _keeps_away(pipeline: AirflowDag | None) -> Iterator[News]:
    if pipeline is None:
        return
    due = pipeline.next_run_at  # a run that goes on keeps the next one waiting: then none is overdue
    if pipeline.is_paused:
        yield News("warn", "paused", together(f"{pipeline.dag_id} is paused, so no run comes. Unpause it in Airflow."))
    elif due and now() - due > OVERDUE_AFTER and not (pipeline.newest and pipeline.newest.goes_on):
        said = f"A run was due at {moment(due)} and has not come. Look at Airflow's scheduler."
        yield News("bad", "run overdue", together(said))
    if fetched := pipeline.not_fetched_since:
        said = (
            f"The files may be old: Airflow fetched them last at {moment(fetched)}. See the log of the DAG processor."
        )
        yield News("bad", "files old", together(said))


def _is_newer(run: AirflowRun, indexed: Indexed) -> bool:
    """Return whether it may know more than the facts: it read them and is not over well, or it came after them."""
    head = indexed.head
    if head is None or run.name == head.run:
        return True
    began = run.started_at
    return run.goes_on or began is None or began > head.known_at


def _failed(run: AirflowRun, indexed: Indexed, below: str) -> Html:
    when = f" at {moment(run.ended_at)}" if run.ended_at else ""
    older = ": what follows may be older than what it did" if indexed.head else ""
    return together("The newest run, ", run_link(run.name, below), f", failed{when}{older}. See its Plan tab.")


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


def moment(at: datetime) -> str:
    """Show a time with its age, so that people need not compare it with the clock."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({age(at)})"


def age(at: datetime) -> str:
    """Return ``now``, ``12 min ago``, ``3 h ago``, ``5 days ago``; of a time to come ``in 12 min``."""
    seconds = (now() - at).total_seconds()
    count = abs(seconds)
    if count < 60:
        return "now"
    days = plural(round(count / 86400), "day")
    said = f"{count / 60:.0f} min" if count < 5400 else f"{count / 3600:.0f} h" if count < 129600 else days
    return f"{said} ago" if seconds > 0 else f"in {said}"
