"""The list of an environment's topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from topicops.features.topic_pages.on_airflow import topic_link
from topicops.features.topic_pages.on_airflow.frame import TONES, pager, topics_document, words
from topicops.features.topic_pages.on_airflow.reading import Indexed
from topicops.features.topic_pages.values import TROUBLE, BrokerShare, ListedRow, Order, TopicsPage, TopicsWanted
from topicops.model.printable import plural
from topicops.on_airflow.pages.parts import chip, chips, choices, empty, filters, tiles, with_query
from topicops.on_airflow.plugged_at_start import MOVING
from topicops.steps.reporting.markup import Html, number, table, tag, together

ORDERS: tuple[Order, ...] = get_args(Order)
_ORDER_OF: Mapping[str, Order] = {
    "topic": "name", "state": "trouble", "partitions": "partitions",
    "owner and file": "owner", "last change": "changed",
}  # fmt: skip
"""Order by which a click on a column's title sorts."""
_EVERYTHING = TopicsWanted()
_CELL, _HEIGHT = 9, 16


def topics_page(indexed: Indexed, wanted: TopicsWanted) -> str:
    parts = _parts(indexed, wanted, indexed.index.page(wanted, indexed.outcomes)) if indexed.head else ()
    return topics_document("Topics", indexed, "topics", *parts)


def _parts(indexed: Indexed, wanted: TopicsWanted, page: TopicsPage) -> Iterator[Html | None]:
    yield tiles(page.words, TONES, wanted.state, lambda state: _address(replace(wanted, state=state)))
    yield from (moving.moves_of_environment(indexed.home, indexed.environment) for moving in MOVING)
    yield _filters(wanted, page)
    if not page.topics:
        yield empty("The cluster has no topics, and no file describes one for this environment.")
        return
    shown = f"{page.found:,} of {plural(page.topics, 'topic')}" if _asked(wanted) else plural(page.topics, "topic")
    yield tag("p", shown, cls="muted", role="status")
    if not page.found:
        yield empty("No topic is like that.")
        return
    live = indexed.head.live.brokers if indexed.head else ()
    brokers = sorted({*live, *(broker for row in page.rows for broker in row.shares)})
    topic, state, partitions, owner, change = (_title(wanted, name) for name in _ORDER_OF)
    titles = (topic, state, partitions, "RF", _legend(brokers), owner, change)
    yield table(titles, (_row(row, brokers) for row in page.rows), cls="topics")
    yield pager("topics", _asked(wanted), first=wanted.first, most=wanted.most, found=page.found)


def _asked(wanted: TopicsWanted) -> dict[str, str]:
    """Return the words of the address, without the place in the list."""
    found = {
        "q": wanted.q,
        "owner": wanted.owner,
        "state": wanted.state,
        "broker": "" if wanted.broker is None else str(wanted.broker),
        "order": "" if wanted.order == _EVERYTHING.order else wanted.order,
    }
    return {name: value for name, value in found.items() if value}


def _address(wanted: TopicsWanted) -> str:
    return with_query("topics", _asked(replace(wanted, first=0)))


def _filters(wanted: TopicsWanted, page: TopicsPage) -> Html:
    owners = {owner: page.owners.get(owner) for owner in (*page.owners, *filter(None, [wanted.owner]))}
    of_owner = choices("owner", owners, wanted.owner, lambda owner: _address(replace(wanted, owner=owner)))
    of_broker = chip(str(wanted.broker), _address(replace(wanted, broker=None)), is_set=True)
    has_filter = any((wanted.q, wanted.owner, wanted.state, wanted.broker is not None))
    return filters(
        (of_owner if len(owners) > 1 else None, None if wanted.broker is None else chips("broker", [of_broker])),
        q=wanted.q,
        address=_address(replace(wanted, q="")),
        everything=_address(replace(_EVERYTHING, order=wanted.order)) if has_filter else "",
    )


def _title(wanted: TopicsWanted, name: str) -> Html:
    order = _ORDER_OF[name]
    is_set = wanted.order == order
    return tag("a", f"{name}{' ▾' if is_set else ''}", href=_address(replace(wanted, order=order)))


def _legend(brokers: Sequence[int]) -> Html:
    span = f"{brokers[0]} … {brokers[-1]}" if len(brokers) > 1 else "".join(map(str, brokers))
    title = "one cell a broker; filled from below: partitions that it leads; red from above: out of sync"
    return tag("span", f"brokers {span}", title=title)


def _row(row: ListedRow, brokers: Sequence[int]) -> Iterator[Html | str | None]:
    yield topic_link(row.name)
    asks_why = any(word in TROUBLE or word == "being deleted" for word in row.words)
    href = f"{with_query('topic', {'name': row.name})}#why"
    yield together(
        words(row.words),
        tag("a", "why", href=href, aria_label=f"why {row.name} is not healthy") if asks_why else None,
        *(
            tag("div", f"{count:,} of {row.partitions:,} {name}", cls="muted")
            for count, name in ((row.offline, "offline"), (row.under_replicated, "under-replicated"))
            if count
        ),
    )
    yield number(row.partitions)
    yield number(row.replication_factor)
    yield _broker_strip(row.shares, brokers) if row.shares else None
    yield together(tag("div", row.owner), tag("div", tag("code", row.place), cls="muted") if row.place else None)
    yield row.changed or None


def _broker_strip(shares: Mapping[int, BrokerShare], brokers: Sequence[int]) -> Html:
    """Draw a cell for each broker: what it leads is filled from below, what is out of sync from above."""
    cells = [_cell(place, shares[broker]) for place, broker in enumerate(brokers) if broker in shares]
    bad = [f"{broker}: {share.missing}" for broker, share in shares.items() if share.missing]
    leads = ", ".join(f"{broker}: {share.leaders}" for broker, share in shares.items())
    label = f"leaders by broker {leads}{'; out of sync ' + ', '.join(bad) if bad else ''}"
    width = len(brokers) * _CELL
    return tag(
        "svg", tag("title", label), *cells, cls="strip-of-brokers", viewBox=f"0 0 {width} {_HEIGHT}", width=width,
        height=_HEIGHT, role="img", aria_label=label,
    )  # fmt: skip


def _cell(place: int, share: BrokerShare) -> Html:
    x, wide = place * _CELL, _CELL - 1
    leads, lacks = (_HEIGHT * part / max(1, share.replicas) for part in (share.leaders, share.missing))
    return together(
        tag("rect", cls="holds", x=x, y=0, width=wide, height=_HEIGHT),
        tag("rect", cls="leads", x=x, y=f"{_HEIGHT - leads:.1f}", width=wide, height=f"{leads:.1f}") if leads else None,
        tag("rect", cls="lacks", x=x, y=0, width=wide, height=f"{lacks:.1f}") if lacks else None,
    )
