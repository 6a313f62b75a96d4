"""Around each Topics page: whose topics, how old, the way to the other pages, and what there is when nothing is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlencode

from topicops.features.topic_pages.on_airflow.news import moment, news, run_link
from topicops.features.topic_pages.on_airflow.reading import DagsOf, Indexed, read_indexed
from topicops.features.topic_pages.values import IndexHead, Word
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.on_airflow.plugged import PAGES, Page
from topicops.on_airflow.routes import STATIC
from topicops.steps.reporting.markup import Html, document, pill, tag, together

TONES: Mapping[Word, str] = {
    "offline": "bad", "under min ISR": "bad", "deleted outside git": "bad", "change failed": "bad", "refused": "bad",
    "under-replicated": "warn", "blocked": "bad", "held": "warn", "rejected": "bad", "missing": "warn",
    "different": "warn", "to delete": "warn", "skipped": "warn", "changed since": "warn", "being deleted": "warn",
    "moving": "calm", "paused": "calm", "unmanaged": "calm", "healthy": "good",
}  # fmt: skip
"""Colour of each state, the gravest first."""
_PLUGGED = {page.name: page.title for page in PAGES}
_PAGES = {"topics": "Topics", "brokers": "Brokers", **_PLUGGED}
BELOW = "../../../"
"""Leads from a page of an environment to Airflow's own pages."""


def topics_document(title: str, indexed: Indexed, here: str, *content: Html | None) -> str:
    """Give the whole page.

    Args:
        here: Which of the pages it is, by its address; empty for none of them.
    """
    links = [
        tag("a", name, href=address, cls="chip", aria_current="page" if address == here else None)
        for address, name in _PAGES.items()
    ]
    others = tag("a", "all environments", href="../../topics", cls="chip")
    head = tag(
        "header",
        tag("h1", title),
        tag("nav", tag("span", tag("strong", indexed.environment)), *links, others, cls="chips", aria_label="Pages"),
        _as_of(indexed.head) if indexed.head else None,
        *(tag("p", found.sentence, cls=f"card {found.tone}") for found in news(indexed, BELOW)),
    )
    body = content if indexed.head or here in _PLUGGED else (tag("p", indexed.problem, cls="empty"),)
    return document(f"{title}: {indexed.environment}", head, *body, static=STATIC).text


def framed(page: Page, home: Path, environment: str, dags: DagsOf) -> str:
    """Give the whole document of another feature's page."""
    indexed = read_indexed(home, environment, dags)
    return topics_document(page.title, indexed, page.name, *page.body(home, environment))


def _as_of(head: IndexHead) -> Html:
    run = run_link(head.run, BELOW)
    same = f"; a run found the same at {moment(head.looked_at)}" if head.looked_at else ""
    commit: list[Html | str] = [", files of ", tag("code", head.commit[:12])] if head.commit else []
    return tag("p", f"As read at {moment(head.read_at)} by run ", run, *commit, f"{same}.", cls="muted")


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
        query = urlencode({**asked, **({"first": str(start)} if start else {})})
        return tag("a", name, href=f"{address}?{query}" if query else address, cls="chip")

    parts = [
        link("← before", max(0, first - most)) if first else None,
        tag("span", f"{min(first + 1, found):,} to {min(first + most, found):,} of {found:,}", cls="muted"),
        link("next →", first + most) if first + most < found else None,
    ]
    return tag("nav", *parts, cls="chips", aria_label="Pages of the list")
