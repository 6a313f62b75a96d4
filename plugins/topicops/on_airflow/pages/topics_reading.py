"""Read what the Topics pages show of one environment: its topic index and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from topicops.flow.later_changes import known_clusters, later_changes
from topicops.flow.topic_index import TopicIndex, index_of, life_of_topic
from topicops.model.errors import ArtifactError
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.later_changes import LaterRun, outcomes_of
from topicops.model.runs.results import OutcomeStatus
from topicops.model.runs.topic_index import (
    BrokerTotals,
    IndexedTopic,
    IndexHead,
    TopicsPage,
    TopicsWanted,
    Word,
    later_words,
)
from topicops.on_airflow.pages.airflow_dag import AirflowDag
from topicops.on_airflow.pages.forge_links import line_address

DagsOf = Callable[[Collection[str]], Mapping[str, AirflowDag]]
"""What Airflow knows of these DAGs, by id."""
LINES_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What all pages of an environment have in common."""

    environment: str
    head: IndexHead | None = None
    """None: there is no index, or it is damaged."""
    problem: str = ""
    """Why there is none."""
    is_unreadable: bool = False
    """There is one, and nobody can read it."""
    later: tuple[LaterRun, ...] = ()
    """What was sent to the cluster after it was read."""
    later_problem: str = ""
    """Why nobody can say what was sent."""
    dags: Mapping[str, AirflowDag] = field(default_factory=dict)
    """What Airflow knows of the environment's DAGs, by their ids."""

    @property
    def outcomes(self) -> Mapping[str, OutcomeStatus]:
        """By topic that was changed later: what came of it."""
        return outcomes_of(self.later)

    @property
    def pipeline(self) -> AirflowDag | None:
        return self.dags.get(self.dag_id)

    @property
    def dag_id(self) -> str:
        return f"topic_pipeline_{self.environment}"

    def file_address(self, file: str, line: int) -> str:
        """Where the forge shows a line of a file; empty: not known."""
        return line_address(self.head.commit_address, file, line) if self.head else ""


def no_dags(_: Collection[str]) -> Mapping[str, AirflowDag]:
    """Where nobody asks Airflow."""
    return {}


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
class EnvironmentModel:
    """One row of the first page."""

    indexed: Indexed
    words: Mapping[Word, int] = field(default_factory=dict)
    """How many topics are in each state."""
    question: str = ""
    """The run that waits for a person's answer; empty: none does."""


def read_environments(
    home: Path, environments: Iterable[str], dags: DagsOf, questions: Mapping[str, str]
) -> tuple[EnvironmentModel, ...]:
    """Each of these environments, also one that no run has read."""
    names, clusters, found = list(environments), known_clusters(home), []
    known = dags([dag_id for name in names for dag_id in _dag_ids(name)])
    for environment in names:
        index, indexed = _indexed(home, environment, lambda ids: {i: known[i] for i in ids if i in known}, clusters)
        words: Mapping[Word, int] = {}
        if indexed.head is not None:
            words = index.words(indexed.outcomes)
        question = questions.get(f"topic_approval_{environment}", "")
        found.append(EnvironmentModel(indexed=indexed, words=words, question=question))
    return tuple(found)


def read_topics(home: Path, environment: str, wanted: TopicsWanted, dags: DagsOf = no_dags) -> TopicsModel:
    index, indexed = _indexed(home, environment, dags)
    if indexed.head is None:
        return TopicsModel(indexed=indexed, wanted=wanted)
    return TopicsModel(indexed=indexed, wanted=wanted, page=index.page(wanted, indexed.outcomes))


def read_topic(home: Path, environment: str, name: str, dags: DagsOf = no_dags) -> TopicModel:
    index, indexed = _indexed(home, environment, dags)
    if indexed.head is None:
        return TopicModel(indexed=indexed, name=name)
    try:
        life, problem = life_of_topic(home, environment, name, most=LINES_SHOWN), ""
    except ArtifactError:
        life, problem = (), "The audit log cannot be read; `topicops audit verify` says why."
    topic, outcome = index.topic(name), indexed.outcomes.get(name)
    if topic is not None and outcome is not None:
        topic = replace(topic, words=frozenset(later_words(outcome)))
    return TopicModel(indexed=indexed, name=name, topic=topic, life=life, life_problem=problem)


def read_brokers(
    home: Path,
    environment: str,
    dags: DagsOf = no_dags,
    *,
    chosen: int | None = None,
    rack: str | None = None,
    first: int = 0,
) -> BrokersModel:
    index, indexed = _indexed(home, environment, dags)
    if indexed.head is None:
        return BrokersModel(indexed=indexed, chosen=chosen, rack=rack)
    found = {broker: BrokerTotals(broker=broker) for broker in indexed.head.live.brokers} | dict(index.brokers())
    affected = None
    if chosen is not None:
        affected = index.page(TopicsWanted(broker=chosen, state="under-replicated", first=first))
    return BrokersModel(
        indexed=indexed, totals=dict(sorted(found.items())), chosen=chosen, rack=rack, affected=affected
    )


def read_indexed(home: Path, environment: str, dags: DagsOf = no_dags) -> Indexed:
    return _indexed(home, environment, dags)[1]


def _dag_ids(environment: str) -> list[str]:
    return [f"topic_{kind}_{environment}" for kind in ("pipeline", "approval", "drift")]


def _indexed(
    home: Path, environment: str, dags: DagsOf, clusters: Mapping[str, str | None] | None = None
) -> tuple[TopicIndex, Indexed]:
    index = index_of(home, environment)
    known = dags(_dag_ids(environment))
    try:
        indexed = Indexed(environment=environment, head=index.head(), dags=known)
    except ArtifactError as error:
        found = Indexed(environment=environment, problem=f"{error}.", dags=known)
        return index, replace(found, is_unreadable=index.path.exists())
    try:
        return index, replace(indexed, later=later_changes(home, indexed.head, clusters)) if indexed.head else indexed
    except ArtifactError as error:
        return index, replace(indexed, later_problem=str(error))
