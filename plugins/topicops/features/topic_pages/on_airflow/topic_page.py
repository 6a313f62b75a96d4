"""One topic: why it is not healthy, its file beside the cluster, its partitions by broker, and its life."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from topicops.features.shared.listed_partitions import ListedPartition, listed_partitions
from topicops.features.topic_pages.indexing import life_of_topic
from topicops.features.topic_pages.on_airflow.frame import broker_link, topics_document, words
from topicops.features.topic_pages.on_airflow.reading import Indexed
from topicops.features.topic_pages.values import IndexedTopic, IndexHead, PlannedChange, later_words
from topicops.model.cluster.health import PartitionHealth
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.errors import ArtifactError
from topicops.model.plans.delta import compared_overrides
from topicops.model.runs.audit import AuditLine
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.topic_config import canonical_overrides
from topicops.on_airflow.pages.parts import BELOW, empty, file_link, more, muted, quoted, run_link, with_query
from topicops.on_airflow.pages.plan_rows import TONES
from topicops.on_airflow.plugged import CAUSES
from topicops.on_airflow.plugged_at_start import MOVING
from topicops.steps.reporting.facts_wording import why_command
from topicops.steps.reporting.markup import Html, lines, pill, table, tag, together
from topicops.steps.reporting.plan_wording import in_units
from topicops.steps.verifying.observation import broker_names, partition_names

PARTITIONS_SHOWN = 200
CAUSES_SHOWN = 20
LINES_SHOWN = 50


def topic_page(indexed: Indexed, name: str) -> str:
    parts = _parts(indexed, indexed.head, name) if indexed.head else ()
    return topics_document(name, indexed, "", *parts)


def _parts(indexed: Indexed, head: IndexHead, name: str) -> Iterator[Html | None]:
    topic = indexed.index.topic(name)
    if topic is None:
        yield empty("Neither the cluster nor a file of this environment has a topic of this name.")
    else:
        outcome = indexed.outcomes.get(name)
        yield tag("p", words(later_words(outcome) if outcome else topic.words), cls="verdict")
        yield _about(head, topic.desired)
        yield from _health(head, topic)
        yield from (moving.moves_of_topic(indexed.home, indexed.environment, name) for moving in MOVING)
        yield from _planned(topic.planned)
        yield from _side_by_side(topic.desired, topic.live)
        yield from _partitions(head.live, topic.live) if topic.live else ()
    yield from _life(indexed, name)


def _about(head: IndexHead, spec: DesiredTopic | None) -> Html:
    if spec is None:
        return muted("No file of this environment describes this topic.")
    file = file_link(head.commit_address, spec.location.file, spec.location.line)
    about = [tag("p", "owner ", tag("strong", spec.owner), ", described in ", file)]
    about += [tag("p", spec.description)] if spec.description else []
    about += [tag("p", f"{spec.lifecycle.value}: {spec.reason}")] if spec.reason else []
    return together(*about)


def _health(head: IndexHead, topic: IndexedTopic) -> Iterator[Html | None]:
    """Yield what is wrong, what ends each of it, and the command that asks the cluster again."""
    live, is_going = head.live, topic.name in head.live.deleting
    found = list(health_lines(live, topic.live)) if topic.live and not is_going else []
    read = topic.live if topic.live and topic.live.states is not None else None
    causes = [cause for causes_of in CAUSES if read for cause in causes_of(live, read)]
    if not (is_going or found or causes):
        return
    title = "Why it is not healthy" if found else "What is under way"
    yield tag("h2", "Why it is still there" if is_going else title, id="why")
    yield tag("ul", *(tag("li", line) for line in found), cls="card bad") if found else None
    if causes:
        yield table(("cause", "what ends it"), causes[:CAUSES_SHOWN])
    yield more(len(causes) - CAUSES_SHOWN, "causes")
    asked = "This is as it was read. What is so now, by each broker too, and the commands that lead out: "
    yield tag("p", asked, tag("code", why_command(topic.name, head.environment)))


def health_lines(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[str]:
    """Yield a sentence for each cause, with its partitions, the gravest first; nothing for a healthy topic."""
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
        page = f"../{quoted(dag_id)}/{with_query('plan', {'run_id': run_id})}#{quoted(entry.anchor)}"
        title = tag("a", entry.title, href=page)
        word = pill(entry.word, "good" if entry.word == "run" else "warn") if entry.word != entry.title else ""
        yield tag("div", tag("p", title, " ", word), lines(entry.reasons), cls="card warn")


def _side_by_side(spec: DesiredTopic | None, live: LiveTopic | None) -> Iterator[Html]:
    """Yield a table with each value of the file beside that of the cluster; those that differ in colour."""
    wants = spec is not None and spec.partitions > 0
    asked, found = dict[str, str](), dict[str, str]()
    if spec is not None and wants:
        asked = {"partitions": str(spec.partitions), "replication factor": str(spec.replication_factor)}
    if live is not None:
        factors = ", ".join(map(str, sorted(live.replication_factors)))
        found = {"partitions": str(live.partitions), "replication factor": factors}
    configs = {name: value for name, value in (spec.configs if spec else {}).items() if value is not None}
    overrides = canonical_overrides(live.overrides) if live else {}
    asked |= {name: in_units(name, value) for name, value in configs.items()}
    found |= {name: in_units(name, value) for name, value in overrides.items()}
    names = ("partitions", "replication factor", *sorted({*configs, *overrides}))
    compared = {*names} - (overrides.keys() - compared_overrides(live).keys()) if wants and live else ()
    rows = [_value_row(name, asked.get(name), found.get(name), compares=name in compared) for name in names]
    if live is not None:
        rows.append(tag("tr", tag("td", "topic id"), tag("td", ""), tag("td", tag("code", live.topic_id or "none"))))
    yield tag("h2", "File and cluster")
    yield table(("value", "file", "cluster"), rows, cls="rows")


def _value_row(name: str, wanted: str | None, found: str | None, *, compares: bool) -> Html:
    differs = compares and wanted != found
    left = tag("ins", wanted or "no override") if differs else wanted
    right = tag("del", found or "no override") if differs else found
    cells = (tag("td", tag("code", name)), tag("td", left), tag("td", right))
    return tag("tr", *cells, cls="diff" if differs else None)


def _partitions(live: ClusterSnapshot, topic: LiveTopic) -> Iterator[Html | None]:
    """Yield a table with a row for each partition and a column for each broker; those with a problem first."""
    found = sorted(
        listed_partitions(live, topic), key=lambda p: (not p.health.is_offline, not p.health.is_under_replicated, p.id)
    )
    racks = {broker: live.racks.get(broker) or "" for partition in found for broker in partition.replicas}
    brokers = sorted(racks, key=lambda broker: (not racks[broker], racks[broker], broker))
    yield tag("h2", "Partitions")
    legend = "★ leads   ● in sync   ✗ out of sync   + being added   - being removed   outlined: the preferred leader"
    yield tag("p", legend, cls="muted replicas")
    titles = [together(broker_link(broker, live), tag("div", racks[broker], cls="muted")) for broker in brokers]
    rows = (_partition_row(partition, brokers) for partition in found[:PARTITIONS_SHOWN])
    yield table(("partition", *titles, "in sync"), rows, cls="grid")
    yield more(len(found) - PARTITIONS_SHOWN, "partitions, none in a worse state")


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


def _life(indexed: Indexed, name: str) -> Iterator[Html]:
    yield tag("h2", "Life")
    try:
        life = life_of_topic(indexed.home, indexed.environment, name, most=LINES_SHOWN)
    except ArtifactError:
        yield tag("p", "The audit log cannot be read; `topicops audit verify` says why.", cls="card bad")
        return
    if life:
        yield table(("when", "what", "outcome", "by", "run"), map(_life_row, life))
    else:
        yield muted("topicops has never changed it: the audit log has no line about it.")


def _life_row(line: AuditLine) -> Iterator[Html | str]:
    outcome = line.outcome.value
    yield f"{line.at:%Y-%m-%d %H:%M:%S} UTC"
    yield line.action
    yield together(
        pill(outcome, TONES[outcome]),
        tag("div", line.answer, cls="muted") if line.answer and outcome != "done" else None,
    )
    yield f"{line.who}{f': {line.comment}' if line.comment else ''}"
    yield together(
        run_link(line.run, BELOW), tag("div", tag("code", line.commit[:12]), cls="muted") if line.commit else None
    )
