"""The brokers and racks of an environment: what each holds and leads, and what is missing because of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from topicops.features.topic_pages.on_airflow import topic_link
from topicops.features.topic_pages.on_airflow.frame import broker_link, pager, topics_document
from topicops.features.topic_pages.on_airflow.reading import Indexed
from topicops.features.topic_pages.values import BrokerShare, IndexHead, TopicsWanted
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import plural
from topicops.on_airflow.pages.parts import bar, empty, muted, with_query
from topicops.steps.reporting.markup import Html, number, pill, table, tag, together

Shares = Mapping[int, BrokerShare]
"""Shares of all topics by broker id, also of brokers that are not registered."""
NO_RACK = "no rack"


def brokers_page(indexed: Indexed) -> str:
    parts: list[Html] = []
    if indexed.head:
        live, shares = indexed.head.live, _shares(indexed, indexed.head.live)
        parts = [_summary(indexed.head, shares), _brokers(live, shares, shares), *_racks(live, shares)]
    return topics_document("Brokers", indexed, "brokers", *parts)


def broker_page(indexed: Indexed, broker: int) -> str:
    parts = _broker(indexed, indexed.head.live, broker) if indexed.head else ()
    return topics_document(f"Broker {broker}", indexed, "", *parts)


def _shares(indexed: Indexed, live: ClusterSnapshot) -> Shares:
    none = {broker: BrokerShare(broker) for broker in live.brokers}
    return dict(sorted({**none, **indexed.index.brokers()}.items()))


def _summary(head: IndexHead, shares: Shares) -> Html:
    live = head.live
    gone = [broker for broker in shares if broker not in live.brokers]
    missing = sum(found.missing for found in shares.values())
    names = f" ({', '.join(map(str, gone))})" if gone else ""
    verdict = f"At {head.known_at:%H:%M}: {plural(len(shares) - len(gone), 'broker')} registered"
    verdict += f", {len(gone)} with replicas not registered{names}" if gone else ""
    verdict += f"; {plural(missing, 'replica')} not in sync." if missing else "; all replicas in sync."
    controller = "" if live.controller_id is None else f"Controller: {live.controller_id}. "
    return together(tag("p", verdict, cls="verdict"), muted(f"{controller}Cluster {live.cluster_id}."))


def _brokers(live: ClusterSnapshot, shown: Shares, every: Shares) -> Html:
    rows = [
        (broker_link(broker, live), _rack_of(live, broker), found, _missing(found)) for broker, found in shown.items()
    ]
    return _loads(("broker", "rack"), rows, every.values())


def _loads(
    head: tuple[str, str], rows: Iterable[tuple[Html | str, str, BrokerShare, Html]], every: Collection[BrokerShare]
) -> Html:
    """Show a row of bars for each share; a full bar is the largest of every share."""
    most_replicas = max((share.replicas for share in every), default=0)
    most_leaders = max((share.leaders for share in every), default=0)
    shown: list[list[Html | str | None]] = [
        [who, where, _bar(share.replicas, most_replicas), _bar(share.leaders, most_leaders), missing]
        for who, where, share, missing in rows
    ]
    return table((*head, "replicas", "leaders", "not in sync here"), shown, cls="loads")


def _missing(found: BrokerShare) -> Html:
    if not found.missing:
        return pill("none", "good")
    address = with_query("topics", {"broker": found.broker, "state": "under-replicated"})
    said = f"{plural(found.missing, 'replica')} of {plural(found.topics_missing, 'topic')}"
    return tag("a", pill(said, "bad"), href=address)


def _racks(live: ClusterSnapshot, shares: Shares) -> Iterator[Html]:
    racks: dict[str, list[BrokerShare]] = defaultdict(list)
    for broker, found in shares.items():
        racks[_rack_of(live, broker)].append(found)
    if len(racks) < 2:
        return
    names = sorted(racks, key=lambda name: (name == NO_RACK, name))
    sums = {name: BrokerShare(*map(sum, zip(*racks[name], strict=True))) for name in names}
    rows = [(name, plural(len(racks[name]), "broker"), found, number(found.missing)) for name, found in sums.items()]
    yield tag("h2", "Racks")
    yield _loads(("rack", "holds"), rows, sums.values())


def _bar(count: int, most: int) -> Html:
    return together(bar(count, count, of=most), number(count))


def _rack_of(live: ClusterSnapshot, broker: int) -> str:
    """Name the rack of a broker; one that is not registered has none that anybody knows."""
    return live.racks.get(broker) or NO_RACK


def _broker(indexed: Indexed, live: ClusterSnapshot, broker: int) -> Iterator[Html | None]:
    shares = _shares(indexed, live)
    found, registered = shares.get(broker), live.brokers.get(broker)
    if found is None:
        yield empty("No broker of this id is registered, and no topic has a replica on it.")
        return
    state = pill("registered", "good") if registered else pill("not registered", "bad")
    controller = pill("controller", "calm") if live.controller_id == broker else None
    yield tag("p", state, " ", controller, cls="verdict")
    if registered:
        yield muted(f"rack {registered.rack or 'none'}; {', '.join(registered.endpoints)}")
    yield _brokers(live, {broker: found}, shares)
    yield tag("p", tag("a", "all topics with a replica here", href=with_query("topics", {"broker": broker})))
    yield tag("h2", "What is missing because of it")
    page = indexed.index.page(TopicsWanted(broker=broker, state="under-replicated"))
    if not page.found:
        yield muted("Nothing: each of its replicas is in sync.")
        return
    rows: list[list[Html | str]] = [
        [topic_link(row.name), row.owner, number(row.shares[broker].missing), number(row.offline)] for row in page.rows
    ]
    yield table(("topic", "owner", "partitions that lack it", "partitions offline"), rows)
    asked = {"broker": str(broker), "state": "under-replicated"}
    yield pager("topics", asked, first=0, most=len(rows), found=page.found)
