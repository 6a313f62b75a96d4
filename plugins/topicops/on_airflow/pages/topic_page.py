"""One topic: why it is not healthy, its file beside the cluster, its partitions by broker, and its life."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import quote, urlencode

from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.topic_index import IndexedTopic, PlannedChange
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.topic_config import canonical_overrides
from topicops.on_airflow.pages.topics_frame import broker_link, topics_document, words
from topicops.on_airflow.pages.topics_reading import Indexed, TopicModel
from topicops.plugged import CAUSES
from topicops.steps.listed_partitions import ListedPartition, listed_partitions
from topicops.steps.reporting.markup import Html, lines, pill, table, tag, together
from topicops.steps.reporting.plans.config_wording import in_units
from topicops.steps.verifying.observation import broker_names, partition_names
from topicops.steps.why_commands import why_command

PARTITIONS_SHOWN = 200
CAUSES_SHOWN = 20
_OUTCOME_TONES = {"done": "good", "already so": "good", "failed": "bad", "unknown": "bad"}


def topic_page(model: TopicModel) -> str:
    """The whole document."""
    topic, head = model.topic, model.indexed.head
    if topic is None or head is None:
        return topics_document(model.name, model.indexed, "", *_unknown(model))
    parts = [
        tag("p", words(topic.words), cls="verdict"),
        _about(model.indexed, topic),
        *_health(model.indexed, head.live, topic),
        *_planned(topic.planned),
        *_side_by_side(topic),
        *(_partitions(head.live, topic.live) if topic.live else ()),
        *_life(model),
    ]
    return topics_document(topic.name, model.indexed, "", *parts)


def _unknown(model: TopicModel) -> Iterator[Html]:
    yield tag("p", "Neither the cluster nor a file of this environment has a topic of this name.", cls="empty")
    yield from _life(model)


def _about(indexed: Indexed, topic: IndexedTopic) -> Html | None:
    spec = topic.desired
    if spec is None:
        return tag("p", "No file of this environment describes this topic.", cls="muted")
    place, address = spec.location, indexed.file_address(spec.location.file, spec.location.line)
    file = tag("code", f"{place.file}:{place.line}")
    if address:
        file = tag("a", file, href=address, cls="airflow", rel="noopener noreferrer")
    about = [tag("p", "owner ", tag("strong", spec.owner), ", described in ", file)]
    about += [tag("p", spec.description)] if spec.description else []
    about += [tag("p", f"{spec.lifecycle.value}: {spec.reason}")] if spec.reason else []
    return together(*about)


def _health(indexed: Indexed, live: ClusterSnapshot, topic: IndexedTopic) -> Iterator[Html | None]:
    """What is wrong, what ends each of it, and the command that asks the cluster again."""
    is_going = topic.name in live.deleting
    found = list(health_lines(live, topic.live)) if topic.live and not is_going else []
    read = topic.live if topic.live and topic.live.states is not None else None
    causes = [cause for causes_of in CAUSES if read for cause in causes_of(live, read)]
    if not (is_going or found or causes):
        return
    yield tag("h2", "Why it is still there" if is_going else "Why it is not healthy", id="why")
    yield tag("ul", *(tag("li", line) for line in found), cls="card bad") if found else None
    if causes:
        yield table(("cause", "what ends it"), causes[:CAUSES_SHOWN])
    if len(causes) > CAUSES_SHOWN:
        yield tag("p", f"… and {len(causes) - CAUSES_SHOWN:,} more causes", cls="muted")
    asked = "This is as it was read. What is so now, by each broker too, and the commands that lead out: "
    yield tag("p", asked, tag("code", why_command(topic.name, indexed.environment)))


def health_lines(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[str]:
    """Yield a sentence for each cause, the gravest first; nothing for a healthy topic.

    Args:
        live: The snapshot that the topic is of; its own topics are not looked at.
    """
    if topic.states is None:
        yield "Its partition states were not read."
        return
    causes: dict[tuple[int, str], list[int]] = defaultdict(list)
    for partition in listed_partitions(live, topic):
        for cause in _causes(live, partition.health):
            causes[cause].append(partition.id)
    for (_, sentence), partitions in sorted(causes.items()):
        subject = partition_names(partitions)
        yield f"{subject[0].upper()}{subject[1:]}: {sentence}."


def _causes(live: ClusterSnapshot, health: PartitionHealth) -> Iterator[tuple[int, str]]:
    if health.is_offline:
        dead = f"{broker_names([health.leader])}, its leader, is not registered" if health.leader >= 0 else ""
        yield 0, f"no leader, so nobody can read or write: {dead or 'no replica in sync is alive'}"
    elif health.is_under_min_isr:
        least = f"{len(health.isr)} in sync where min.insync.replicas asks for {health.min_isr}"
        yield 1, f"{least}: producers with acks=all are refused"
    if health.missing and health.isr and health.is_under_replicated:
        yield 2, f"{_named(health.missing, live.brokers)} not in the ISR"


def _named(missing: Collection[int], registered: Collection[int]) -> str:
    gone = [broker for broker in missing if broker not in registered]
    slow = [broker for broker in missing if broker in registered]
    parts = [
        f"{broker_names(gone)} (not registered)" if gone else "",
        f"{broker_names(slow)} (registered, and behind)" if slow else "",
    ]
    return f"{' and '.join(filter(None, parts))} {'is' if len(missing) == 1 else 'are'}"


def _planned(planned: Sequence[PlannedChange]) -> Iterator[Html]:
    if not planned:
        return
    yield tag("h2", "What the plan has about it")
    for entry in planned:
        dag_id, _, run_id = entry.run.partition("/")
        page = f"../{quote(dag_id, safe='')}/plan?{urlencode({'run_id': run_id})}#{quote(entry.anchor)}"
        title = tag("a", entry.title, href=page)
        word = pill(entry.word, "good" if entry.word == "run" else "warn") if entry.word != entry.title else ""
        yield tag("div", tag("p", title, " ", word), lines(entry.reasons), cls="card warn")


def _side_by_side(topic: IndexedTopic) -> Iterator[Html]:
    """Each value of the file beside that of the cluster; those that differ in colour."""
    yield tag("h2", "File and cluster")
    yield table(("value", "file", "cluster"), _value_rows(topic.desired, topic.live), cls="rows")


def _value_rows(spec: DesiredTopic | None, live: LiveTopic | None) -> Iterator[Html]:
    wants = spec is not None and spec.partitions > 0
    pairs: list[tuple[str, str | None, str | None]] = [
        ("partitions", str(spec.partitions) if spec and wants else None, str(live.partitions) if live else None),
        (
            "replication factor",
            str(spec.replication_factor) if spec and wants else None,
            ", ".join(map(str, sorted(live.replication_factors))) if live else None,
        ),
    ]
    asked = {name: value for name, value in (spec.configs if spec else {}).items() if value is not None}
    found = canonical_overrides(live.overrides) if live else {}
    for name in sorted({*asked, *found}):
        sides = (in_units(name, side[name]) if name in side else None for side in (asked, found))
        pairs.append((name, *sides))  # type: ignore[arg-type]  # two of them
    yield from (_value_row(*pair, compares=bool(spec and live and wants)) for pair in pairs)
    if live is not None:
        yield tag("tr", tag("td", "topic id"), tag("td", ""), tag("td", tag("code", live.topic_id or "none")))


def _value_row(name: str, wanted: str | None, found: str | None, *, compares: bool) -> Html:
    differs = compares and wanted != found
    left = tag("ins", wanted or "no override") if differs else wanted
    right = tag("del", found or "no override") if differs else found
    cells = (tag("td", tag("code", name)), tag("td", left), tag("td", right))
    return tag("tr", *cells, cls="diff" if differs else None)


# ---- the partitions ----


def _partitions(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[Html | None]:
    """A row for each partition and a column for each broker; those with a problem first."""
    found = sorted(listed_partitions(live, topic), key=_by_trouble)
    shown = found[:PARTITIONS_SHOWN]
    brokers = sorted(
        {broker for partition in found for broker in partition.replicas},
        key=lambda b: (not _rack(live, b), _rack(live, b), b),
    )
    yield tag("h2", "Partitions")
    legend = "★ leads   ● in sync   ✗ out of sync   + being added   - being removed   outlined: the preferred leader"
    yield tag("p", legend, cls="muted replicas")
    titles = [
        tag("th", broker_link(broker, live), tag("div", _rack(live, broker), cls="muted"), scope="col")
        for broker in brokers
    ]
    head = tag("thead", tag("tr", tag("th", "partition", scope="col"), *titles, tag("th", "in sync", scope="col")))
    body = tag("tbody", *(_partition_row(partition, brokers) for partition in shown))
    yield tag("div", tag("table", head, body, cls="grid"), cls="scroll")
    if len(found) > len(shown):
        yield tag("p", f"… and {len(found) - len(shown):,} more partitions, none in a worse state", cls="muted")


def _by_trouble(partition: ListedPartition) -> tuple[bool, bool, int]:
    return (not partition.health.is_offline, not partition.health.is_under_replicated, partition.id)


def _rack(live: ClusterSnapshot, broker: int) -> str:
    return live.racks.get(broker) or ""


def _partition_row(partition: ListedPartition, brokers: Sequence[int]) -> Html:
    health = partition.health
    need = f"{len(health.isr)} of {len(partition.replicas)}"
    least = f", at least {health.min_isr}" if health.refuses_all_acks else ""
    sync = tag("td", f"{need}{least}", cls="final" if least else None)
    number = tag("th", str(partition.id), scope="row")
    return tag("tr", number, *(tag("td", _replica(partition, broker)) for broker in brokers), sync)


def _replica(partition: ListedPartition, broker: int) -> Html | None:
    if broker not in partition.replicas:
        return None
    in_sync = broker in partition.health.isr
    sign, tone, title = ("●", "calm", "in sync") if in_sync else ("✗", "bad", "out of sync")
    if partition.leader == broker:
        sign, tone, title = "★", "good", "leads"
    if broker in partition.adding:
        sign, title = f"{sign}+", f"{title}, being added"
    if broker in partition.removing:
        sign, title = f"{sign}-", f"{title}, being removed"
    first = partition.replicas[0] == broker
    label = f"broker {broker}: {title}{', preferred leader' if first else ''}"
    return tag("span", sign, cls=f"sign {tone}{' first' if first else ''}", title=label, aria_label=label, role="img")


# ---- its life ----


def _life(model: TopicModel) -> Iterator[Html]:
    yield tag("h2", "Life")
    if model.life_problem:
        yield tag("p", model.life_problem, cls="card bad")
    elif not model.life:
        yield tag("p", "topicops has never changed it: the audit log has no line about it.", cls="muted")
    else:
        yield table(("when", "what", "outcome", "by", "run"), map(_life_row, model.life))


def _life_row(line: AuditLine) -> Iterator[Html | str]:
    dag_id, _, run_id = line.run.partition("/")
    page = f"../../../dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    run = tag("code", line.run) if dag_id == "cli" else tag("a", run_id, href=page, cls="airflow")
    yield f"{line.at:%Y-%m-%d %H:%M:%S} UTC"
    yield line.action
    yield together(
        pill(line.outcome.value, _OUTCOME_TONES.get(line.outcome.value, "warn")),
        tag("div", line.answer, cls="muted") if line.answer and line.outcome.value != "done" else None,
    )
    comment = line.comment if isinstance(line.comment, str) else ""
    yield f"{line.who}{f': {comment}' if comment else ''}"
    yield together(run, tag("div", tag("code", line.commit[:12]), cls="muted") if line.commit else None)
