"""What all pages of an environment have in common: the head of its topic index, and what happened since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.later import LaterRun, known_clusters, later_changes, outcomes_of
from topicops.features.topic_pages.values import IndexHead, Word
from topicops.flow.runs.run import Place
from topicops.model.errors import ArtifactError
from topicops.model.runs.results import OutcomeStatus
from topicops.on_airflow.names import KINDS
from topicops.on_airflow.pages.airflow_state import AirflowDag
from topicops.on_airflow.plugged_at_start import MOVING

DagsOf = Callable[[Collection[str]], Mapping[str, AirflowDag]]
"""State of these DAGs in Airflow, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """An environment as its topic index, the audit logs and Airflow know it."""

    home: Place
    environment: str
    head: IndexHead | None = None
    """None means that there is no index, or that it is damaged."""
    problem: str = ""
    """Reason why there is no index."""
    is_unreadable: bool = False
    """Whether there is an index that cannot be read."""
    later: tuple[LaterRun, ...] = ()
    """Runs that sent something to the cluster after the index was read."""
    later_problem: str = ""
    """Reason why such runs are not known."""
    dags: Mapping[str, AirflowDag] = field(default_factory=dict)
    """State of the environment's DAGs in Airflow, by id."""

    @property
    def index(self) -> TopicIndex:
        return TopicIndex.of(self.home, self.environment)

    @property
    def outcomes(self) -> Mapping[str, OutcomeStatus]:
        """What came of the changes of each topic that was changed later; its replicas may move still."""
        moving = {name for pages in MOVING for name in pages.topics_that_move(self.home, self.environment)}
        found = outcomes_of(self.later)
        return {name: OutcomeStatus.MOVING if name in moving else status for name, status in found.items()}

    @property
    def pipeline(self) -> AirflowDag | None:
        return self.dags.get(self.dag_id)

    @property
    def dag_id(self) -> str:
        return f"topic_pipeline_{self.environment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    indexed: Indexed
    words: Mapping[Word, int] = field(default_factory=dict)
    """Number of topics in each state."""
    question: str = ""
    """Id of the run that waits for a person's answer; empty if none does."""


def read_environments(
    home: Place, environments: Collection[str], dags: DagsOf, questions: Mapping[str, str]
) -> Iterator[EnvironmentRow]:
    """Read each of these environments, also one that no run has read."""
    clusters, known = known_clusters(home), dags([dag_id for name in environments for dag_id in _dag_ids(name)])
    for environment in environments:
        indexed = _indexed(home, environment, known, clusters)
        words = indexed.index.words(indexed.outcomes) if indexed.head else {}
        question = questions.get(f"topic_approval_{environment}", "")
        yield EnvironmentRow(indexed=indexed, words=words, question=question)


def read_indexed(home: Place, environment: str, dags: DagsOf = lambda _: {}) -> Indexed:
    return _indexed(home, environment, dags(_dag_ids(environment)))


def _dag_ids(environment: str) -> Collection[str]:
    return [f"topic_{kind}_{environment}" for kind in KINDS]


def _indexed(
    home: Place, environment: str, dags: Mapping[str, AirflowDag], clusters: Mapping[str, str | None] | None = None
) -> Indexed:
    own = {dag_id: dags[dag_id] for dag_id in _dag_ids(environment) if dag_id in dags}
    found = Indexed(home=home, environment=environment, dags=own)
    try:
        head = found.index.head()
    except ArtifactError as error:
        return replace(found, problem=f"{error}.", is_unreadable=found.index.path.exists())
    found = replace(found, head=head)
    try:
        return replace(found, later=later_changes(home, head, known_clusters(home) if clusters is None else clusters))
    except ArtifactError as error:
        return replace(found, later_problem=str(error))
