"""The brokers and racks of an environment: what each holds and leads, and what is missing because of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.printable import plural
from topicops.model.runs.topic_index import BrokerTotals, IndexHead, TopicsPage
from topicops.on_airflow.pages.plan_page import bar
from topicops.on_airflow.pages.topics_frame import broker_link, pager, topic_link, topics_document
from topicops.on_airflow.pages.topics_reading import BrokersModel
from topicops.steps.reporting.markup import Html, number, pill, table, tag, together

_HEAD = ("broker", "rack", "replicas", "leaders", "not in sync here")
NO_RACK = "no rack"


def brokers_page(model: BrokersModel) -> str:
    """All brokers; or one of them, or one rack, where the model names it."""
    head, totals = model.indexed.head, model.totals or {}
    if head is None:
        return topics_document("Brokers", model.indexed, "brokers")
    live = head.live
    if model.chosen is not None:
        return topics_document(f"Broker {model.chosen}", model.indexed, "", *_broker(model, live, totals))
    if model.rack is not None:
        members = {b: found for b, found in totals.items() if _rack(live, b) == model.rack}
        nothing = tag("p", "No broker of this cluster is in a rack of this name.", cls="empty")
        body = [_summary(head, members), _brokers(live, members, totals)] if members else [nothing]
        return topics_document(f"Rack {model.rack}", model.indexed, "", *body)
    body = [_summary(head, totals), _brokers(live, totals, totals), *_racks(live, totals)]
    return topics_document("Brokers", model.indexed, "brokers", *body)


def _summary(head: IndexHead, totals: Mapping[int, BrokerTotals]) -> Html:
    live = head.live
    gone = [broker for broker in totals if broker not in live.brokers]
    missing = sum(found.missing for found in totals.values())
    names = f" ({', '.join(map(str, gone))})" if gone else ""
    verdict = f"At {head.known_at:%H:%M}: {plural(len(totals) - len(gone), 'broker')} registered"
    verdict += f", {len(gone)} with replicas not registered{names}" if gone else ""
    verdict += f"; {plural(missing, 'replica')} not in sync." if missing else "; all replicas in sync."
    controller = "" if live.controller_id is None else f"Controller: {live.controller_id}. "
    about = tag("p", f"{controller}Cluster {live.cluster_id}.", cls="muted")
    return together(tag("p", verdict, cls="verdict"), about)


def _brokers(live: ClusterSnapshot, shown: Mapping[int, BrokerTotals], every: Mapping[int, BrokerTotals]) -> Html:
    most_replicas = max((found.replicas for found in every.values()), default=0)
    most_leaders = max((found.leaders for found in every.values()), default=0)
    rows = (_broker_row(live, found, most_replicas, most_leaders) for found in shown.values())
    return table(_HEAD, rows, cls="loads")


def _broker_row(
    live: ClusterSnapshot, found: BrokerTotals, most_replicas: int, most_leaders: int
) -> Iterator[Html | str | None]:
    rack = _rack(live, found.broker)
    yield broker_link(found.broker, live)
    yield tag("a", rack, href=f"rack?{urlencode({'name': rack})}")
    yield together(bar(found.replicas, found.replicas, of=most_replicas), number(found.replicas))
    yield together(bar(found.leaders, found.leaders, of=most_leaders), number(found.leaders))
    yield _missing(found)


def _missing(found: BrokerTotals) -> Html | None:
    if not found.missing:
        return pill("none", "good")
    query = urlencode({"broker": found.broker, "state": "under-replicated"})
    said = f"{plural(found.missing, 'replica')} of {plural(found.topics_missing, 'topic')}"
    return tag("a", pill(said, "bad"), href=f"topics?{query}")


def _racks(live: ClusterSnapshot, totals: Mapping[int, BrokerTotals]) -> Iterator[Html]:
    racks: dict[str, list[BrokerTotals]] = defaultdict(list)
    for broker, found in totals.items():
        racks[_rack(live, broker)].append(found)
    if len(racks) < 2:
        return
    sums = {
        name: _sum(members) for name, members in sorted(racks.items(), key=lambda item: (item[0] == NO_RACK, item[0]))
    }
    most_replicas, most_leaders = (max(getattr(s, key) for s in sums.values()) for key in ("replicas", "leaders"))
    rows: list[list[Html | str]] = [
        [
            tag("a", name, href=f"rack?{urlencode({'name': name})}"),
            plural(len(racks[name]), "broker"),
            together(bar(found.replicas, found.replicas, of=most_replicas), number(found.replicas)),
            together(bar(found.leaders, found.leaders, of=most_leaders), number(found.leaders)),
            number(found.missing),
        ]
        for name, found in sums.items()
    ]
    yield tag("h2", "Racks")
    yield table(("rack", "holds", "replicas", "leaders", "not in sync here"), rows, cls="loads")


def _sum(members: Sequence[BrokerTotals]) -> BrokerTotals:
    return BrokerTotals(
        broker=-1,
        replicas=sum(found.replicas for found in members),
        leaders=sum(found.leaders for found in members),
        missing=sum(found.missing for found in members),
    )


def _rack(live: ClusterSnapshot, broker: int) -> str:
    """A broker that is not registered has no rack that anybody knows."""
    return live.racks.get(broker) or NO_RACK


# ---- one broker ----


def _broker(model: BrokersModel, live: ClusterSnapshot, totals: Mapping[int, BrokerTotals]) -> Iterator[Html | None]:
    found, registered = totals.get(model.chosen or 0), live.brokers.get(model.chosen or 0)
    if found is None:
        yield tag("p", "No broker of this id is registered, and no topic has a replica on it.", cls="empty")
        return
    state = pill("registered", "good") if registered else pill("not registered", "bad")
    controller = pill("controller", "calm") if live.controller_id == found.broker else None
    yield tag("p", state, " ", controller, cls="verdict")
    if registered:
        yield tag("p", f"rack {registered.rack or 'none'}; {', '.join(registered.endpoints)}", cls="muted")
    yield _brokers(live, {found.broker: found}, totals)
    query = urlencode({"broker": found.broker})
    yield tag("p", tag("a", "all topics with a replica here", href=f"topics?{query}"))
    yield from _affected(found, model.affected)


def _affected(found: BrokerTotals, page: TopicsPage | None) -> Iterator[Html | None]:
    yield tag("h2", "What is missing because of it")
    if page is None or not page.found:
        yield tag("p", "Nothing: each of its replicas is in sync.", cls="muted")
        return
    rows: list[list[Html | str]] = [
        [topic_link(row.name), row.owner, number(row.shares[found.broker].missing), number(row.offline)]
        for row in page.rows
    ]
    yield table(("topic", "owner", "partitions that lack it", "partitions offline"), rows)
    asked = {"broker": str(found.broker), "state": "under-replicated"}
    yield pager("topics", asked, first=0, most=len(rows), found=page.found)
