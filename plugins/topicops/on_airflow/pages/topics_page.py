"""The list of an environment's topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import get_args
from urllib.parse import urlencode

from topicops.model.printable import plural
from topicops.model.runs.topic_index import TROUBLE, ListedRow, Order, TopicsPage, TopicsWanted
from topicops.on_airflow.pages.topics_frame import (
    TONES,
    broker_strip,
    pager,
    topic_link,
    topics_document,
    why_link,
    words,
)
from topicops.on_airflow.pages.topics_reading import TopicsModel
from topicops.steps.reporting.markup import Html, tag, together

ORDERS: tuple[Order, ...] = get_args(Order)
_ORDER_OF = {"topic": "name", "state": "trouble", "partitions": "partitions", "owner and file": "owner",
             "last change": "changed"}  # fmt: skip
_EVERYTHING = TopicsWanted()


def topics_page(model: TopicsModel) -> str:
    """The whole document."""
    return topics_document("Topics", model.indexed, "topics", *(_parts(model, model.page) if model.page else ()))


def _parts(model: TopicsModel, page: TopicsPage) -> Iterator[Html | None]:
    wanted = model.wanted
    yield _tiles(wanted, page)
    yield _filters(wanted, page)
    if not page.topics:
        yield tag("p", "The cluster has no topics, and no file describes one for this environment.", cls="empty")
        return
    shown = f"{page.found:,} of {plural(page.topics, 'topic')}" if asked(wanted) else plural(page.topics, "topic")
    yield tag("p", shown, cls="muted", role="status")
    if not page.found:
        yield tag("p", "No topic is like that.", cls="empty")
        return
    live = model.indexed.head.live if model.indexed.head else None
    there = {broker for row in page.rows for broker in row.shares}
    brokers = sorted({*(live.brokers if live else ()), *there})
    head: list[Html | str] = [
        _title(wanted, "topic"),
        _title(wanted, "state"),
        _title(wanted, "partitions"),
        "RF",
        _legend(brokers),
        _title(wanted, "owner and file"),
        _title(wanted, "last change"),
    ]
    yield _table(head, (_row(row, brokers) for row in page.rows))
    yield pager("topics", asked(wanted), first=wanted.first, most=wanted.most, found=page.found)


def asked(wanted: TopicsWanted) -> dict[str, str]:
    """The words of the address, without the place in the list."""
    found = {"q": wanted.q, "owner": wanted.owner, "state": wanted.state}
    found["broker"] = "" if wanted.broker is None else str(wanted.broker)
    found["order"] = "" if wanted.order == _EVERYTHING.order else wanted.order
    return {name: value for name, value in found.items() if value}


def _address(wanted: TopicsWanted) -> str:
    query = urlencode(asked(replace(wanted, first=0)))
    return f"topics?{query}" if query else "topics"


def _tiles(wanted: TopicsWanted, page: TopicsPage) -> Html:
    """A tile for each state; it leads to what it counts, and back."""
    tiles = []
    for word, tone in TONES.items():
        if count := page.words.get(word, 0):
            is_set = wanted.state == word
            href = _address(replace(wanted, state="" if is_set else word))
            link = tag("a", tag("strong", f"{count:,}"), f" {word}", href=href, aria_current="true" if is_set else None)
            tiles.append(tag("li", link, cls=f"tile {tone}"))
    return tag("ul", *tiles, cls="tiles")


def _filters(wanted: TopicsWanted, page: TopicsPage) -> Html:
    search = tag(
        "input",
        type="search",
        id="search",
        value=wanted.q,
        placeholder="topic, owner, file; then Enter",
        aria_label="Search topic, owner or file",
        data_address=_address(replace(wanted, q="")),
    )
    has_filter = any((wanted.q, wanted.owner, wanted.state, wanted.broker is not None))
    everything = tag("a", "show all", href=_address(replace(_EVERYTHING, order=wanted.order)), cls="chip")
    owners = dict.fromkeys([*page.owners, *([wanted.owner] if wanted.owner else [])])
    chips = [_owner_chip(wanted, owner, page.owners.get(owner)) for owner in owners] if len(owners) > 1 else []
    broker = [] if wanted.broker is None else [
        tag("span", "broker", cls="muted"),
        tag("a", str(wanted.broker), href=_address(replace(wanted, broker=None)), cls="chip", aria_current="true"),
    ]  # fmt: skip
    return tag(
        "nav",
        tag("div", tag("span", "owner", cls="muted"), *chips, cls="chips") if chips else None,
        tag("div", *broker, cls="chips") if broker else None,
        tag("div", search, everything if has_filter else None, cls="chips"),
        cls="filters",
        aria_label="Filter",
    )


def _owner_chip(wanted: TopicsWanted, owner: str, count: int | None) -> Html:
    is_set = wanted.owner == owner
    label = together(owner, " ", tag("span", "" if count is None else f"{count:,}", cls="muted"))
    href = _address(replace(wanted, owner="" if is_set else owner))
    return tag("a", label, href=href, cls="chip", aria_current="true" if is_set else None)


def _title(wanted: TopicsWanted, name: str) -> Html:
    """A column's title, which sorts by it."""
    order: Order = _ORDER_OF[name]  # type: ignore[assignment]  # each is one
    is_set = wanted.order == order
    return tag("a", f"{name}{' ▾' if is_set else ''}", href=_address(replace(wanted, order=order)))


def _legend(brokers: Sequence[int]) -> Html:
    span = f"{brokers[0]} … {brokers[-1]}" if len(brokers) > 1 else "".join(map(str, brokers))
    title = "one cell a broker; filled from below: partitions that it leads; red from above: out of sync"
    return tag("span", f"brokers {span}", title=title)


def _table(head: Iterable[Html | str], rows: Iterable[Html]) -> Html:
    titles = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head)))
    return tag("div", tag("table", titles, tag("tbody", *rows), cls="topics"), cls="scroll")


def _row(row: ListedRow, brokers: Sequence[int]) -> Html:
    unwell = [
        f"{count:,} of {row.partitions:,} {name}"
        for count, name in ((row.offline, "offline"), (row.under_replicated, "under-replicated"))
        if count
    ]
    asks_why = any(word in TROUBLE or word == "being deleted" for word in row.words)
    cells: list[Html | str | None] = [
        topic_link(row.name),
        together(
            words(row.words),
            why_link(row.name) if asks_why else None,
            *(tag("div", line, cls="muted") for line in unwell),
        ),
        tag("span", f"{row.partitions:,}", cls="number"),
        tag("span", f"{row.replication_factor}", cls="number"),
        broker_strip(dict(row.shares), brokers) if row.shares else None,
        together(tag("div", row.owner), tag("div", tag("code", row.place), cls="muted") if row.place else None),
        row.changed or None,
    ]
    return tag("tr", *(tag("td", cell) for cell in cells))
