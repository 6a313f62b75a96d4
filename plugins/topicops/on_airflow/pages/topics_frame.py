"""Around each Topics page: whose topics, how old, the way to the other pages, and what there is when nothing is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.runs.topic_index import BrokerShare, IndexHead, Word
from topicops.on_airflow.pages.frame import STATIC
from topicops.on_airflow.pages.newest_facts import moment, news, run_link
from topicops.on_airflow.pages.topics_reading import DagsOf, Indexed, no_dags, read_indexed
from topicops.plugged import PAGES, Page
from topicops.steps.reporting.markup import Html, document, pill, tag, together

TONES: dict[Word, str] = {
    "offline": "bad",
    "under min ISR": "bad",
    "deleted outside git": "bad",
    "change failed": "bad",
    "refused": "bad",
    "under-replicated": "warn",
    "blocked": "bad",
    "held": "warn",
    "rejected": "bad",
    "missing": "warn",
    "different": "warn",
    "to delete": "warn",
    "skipped": "warn",
    "changed since": "warn",
    "being deleted": "warn",
    "moving": "calm",
    "paused": "calm",
    "unmanaged": "calm",
    "healthy": "good",
}
"""Colour of each state, the gravest first."""
_PAGES = {"topics": "Topics", "brokers": "Brokers"}
_PLUGGED = {page.name: page.title for page in PAGES}
_CELL, _HEIGHT = 9, 16
BELOW = "../../../"
"""Leads from a page of an environment to Airflow's own pages."""


def topics_document(title: str, indexed: Indexed, here: str, *content: Html | None) -> str:
    """The whole page.

    Args:
        here: Which of the pages it is, by its address; empty: none of them.
    """
    links = [
        tag("a", name, href=address, cls="chip", aria_current="page" if address == here else None)
        for address, name in {**_PAGES, **_PLUGGED}.items()
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


def plugged_page(page: Page, home: Path, environment: str, dags: DagsOf = no_dags) -> str:
    """The page of a feature."""
    return topics_document(page.title, read_indexed(home, environment, dags), page.name, *page.body(home, environment))


def _as_of(head: IndexHead) -> Html:
    run = run_link(head.run, BELOW)
    same = f"; a run found the same at {moment(head.looked_at)}" if head.looked_at else ""
    commit: list[Html | str] = [", files of ", tag("code", head.commit[:12])] if head.commit else []
    return tag("p", f"As read at {moment(head.read_at)} by run ", run, *commit, f"{same}.", cls="muted")


def words(found: Iterable[Word]) -> Html:
    """The states of a topic as pills, the gravest first."""
    there = set(found)
    return together(*(together(pill(word, tone), " ") for word, tone in TONES.items() if word in there))


def topic_link(name: str) -> Html:
    return tag("a", name, href=f"topic?{urlencode({'name': name})}", cls="topic")


def why_link(name: str) -> Html:
    """To the part of the topic's page that says why it is not healthy."""
    return tag("a", "why", href=f"topic?{urlencode({'name': name})}#why", aria_label=f"why {name} is not healthy")


def broker_link(broker: int, live: ClusterSnapshot) -> Html:
    gone = "" if broker in live.brokers else " (not registered)"
    return tag("a", f"{broker}{gone}", href=f"broker?id={broker}", cls=None if not gone else "final")


def broker_strip(shares: dict[int, BrokerShare], brokers: Iterable[int]) -> Html:
    """A cell for each broker: what it leads is filled from below, what is out of sync from above."""
    ids = list(brokers)
    cells = [_cell(place, shares[broker]) for place, broker in enumerate(ids) if broker in shares]
    bad = [f"{broker}: {share.missing}" for broker, share in shares.items() if share.missing]
    leads = ", ".join(f"{broker}: {share.leaders}" for broker, share in shares.items())
    label = f"leaders by broker {leads}{'; out of sync ' + ', '.join(bad) if bad else ''}"
    width = max(1, len(ids)) * _CELL
    return tag(
        "svg", tag("title", label), *cells, cls="strip-of-brokers", viewBox=f"0 0 {width} {_HEIGHT}", width=width,
        height=_HEIGHT, role="img", aria_label=label,
    )  # fmt: skip


def _cell(place: int, share: BrokerShare) -> Html:
    x = place * _CELL
    leads, lacks = (_HEIGHT * part / max(1, share.replicas) for part in (share.leaders, share.missing))
    wide = _CELL - 1
    return together(
        tag("rect", cls="holds", x=x, y=0, width=wide, height=_HEIGHT),
        tag("rect", cls="leads", x=x, y=f"{_HEIGHT - leads:.1f}", width=wide, height=f"{leads:.1f}") if leads else None,
        tag("rect", cls="lacks", x=x, y=0, width=wide, height=f"{lacks:.1f}") if lacks else None,
    )


def pager(address: str, asked: dict[str, str], *, first: int, most: int, found: int) -> Html | None:
    """Links to the page before and the page after."""
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
