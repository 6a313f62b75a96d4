"""Read what the Topics pages show of one environment: its topic index, the audit log, and the history of its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from topicops.flow.history import trends
from topicops.flow.topic_index import TopicIndex, index_of, indexed_environments, life_of_topic
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.history import Trends
from topicops.model.runs.topic_index import BrokerTotals, IndexedTopic, IndexHead, TopicsPage, TopicsWanted

LINES_SHOWN = 50
RUNS_SHOWN = 60
_COMMIT_PAGE = re.compile(r"(?P<base>https?://.+?)/(?:tree|commit|blob)/(?P<sha>[0-9a-f]{7,64})(?:/.*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What all pages of an environment have in common."""

    environment: str
    head: IndexHead | None = None
    """None: there is no index, or it is damaged."""
    problem: str = ""
    """Why there is none."""

    @property
    def dag_id(self) -> str:
        return f"topic_pipeline_{self.environment}"

    def file_address(self, file: str, line: int) -> str:
        """Where the forge shows a line of a file; empty: not known."""
        found = _COMMIT_PAGE.fullmatch(self.head.commit_address) if self.head else None
        if found is None or Path(file).is_absolute():
            return ""
        return f"{found['base']}/blob/{found['sha']}/{quote(file)}#L{line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsModel:
    indexed: Indexed
    wanted: TopicsWanted
    page: TopicsPage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicModel:
    indexed: Indexed
    name: str
    topic: IndexedTopic | None = None
    life: Sequence[AuditLine] = ()
    """Of the audit log, newest first."""
    life_problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersModel:
    indexed: Indexed
    totals: Mapping[int, BrokerTotals] | None = None
    """By broker; also of brokers that are not registered."""
    chosen: int | None = None
    rack: str | None = None
    affected: TopicsPage | None = None
    """Topics with a partition whose ISR lacks the chosen broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendsModel:
    indexed: Indexed
    trends: Trends | None = None
    problem: str = ""


def environments(home: Path) -> tuple[str, ...]:
    return indexed_environments(home)


def read_topics(home: Path, environment: str, wanted: TopicsWanted) -> TopicsModel:
    index, indexed = _indexed(home, environment)
    if indexed.head is None:
        return TopicsModel(indexed=indexed, wanted=wanted)
    return TopicsModel(indexed=indexed, wanted=wanted, page=index.page(wanted))


def read_topic(home: Path, environment: str, name: str) -> TopicModel:
    index, indexed = _indexed(home, environment)
    if indexed.head is None:
        return TopicModel(indexed=indexed, name=name)
    try:
        life, problem = life_of_topic(home, environment, name, most=LINES_SHOWN), ""
    except ArtifactError:
        life, problem = (), "The audit log cannot be read; `topicops audit verify` says why."
    return TopicModel(indexed=indexed, name=name, topic=index.topic(name), life=life, life_problem=problem)


def read_brokers(
    home: Path, environment: str, *, chosen: int | None = None, rack: str | None = None, first: int = 0
) -> BrokersModel:
    index, indexed = _indexed(home, environment)
    if indexed.head is None:
        return BrokersModel(indexed=indexed, chosen=chosen, rack=rack)
    found = {broker: BrokerTotals(broker=broker) for broker in indexed.head.live.brokers} | dict(index.brokers())
    affected = None
    if chosen is not None:
        affected = index.page(TopicsWanted(broker=chosen, state="under-replicated", first=first))
    return BrokersModel(
        indexed=indexed, totals=dict(sorted(found.items())), chosen=chosen, rack=rack, affected=affected
    )


def read_trends(home: Path, environment: str) -> TrendsModel:
    _, indexed = _indexed(home, environment)
    try:
        return TrendsModel(indexed=indexed, trends=trends(home, environment, most=RUNS_SHOWN))
    except TopicopsError:
        return TrendsModel(indexed=indexed, problem="No run of this environment has left a history yet.")


def _indexed(home: Path, environment: str) -> tuple[TopicIndex, Indexed]:
    index = index_of(home, environment)
    try:
        return index, Indexed(environment=environment, head=index.head())
    except ArtifactError as error:
        return index, Indexed(environment=environment, problem=f"{error}.")
