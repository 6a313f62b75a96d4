"""One run: its folder, what it reads from it, and how it reaches the cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from topicops.edges.connections.lookup import ConnectionSource, from_environment, kafka_properties, zookeeper_address
from topicops.edges.home.artifacts import ArtifactStore, runs_folder
from topicops.flow.interception import PORT_WRAPPERS
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import (
    ArtifactError,
    ClusterError,
    ClusterUnreachableError,
    UnsupportedTargetError,
    UsageError,
)
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.plans.plan_file import changes_from_json, plan_from_json, plan_to_json
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment

if TYPE_CHECKING:
    from topicops.edges.kafka.reader import KafkaReader
    from topicops.edges.zookeeper.reader import ZooKeeperReader
    from topicops.steps.specs.validate import Validated

ENVIRONMENT_FILE = "environment.json"
NOTES_FILE = "notes.json"
KINDS = ("all", *ACTIONS)
"""What one task of a run applies."""
Engine = Literal["spark", "python"]
Facts = dict[str, object]
"""What a step hands on beside its artifact: paths, digests and counts; small enough for XCom."""


def home_folder() -> Path:
    """Where runs and the local cluster live: ``$TOPICOPS_HOME``, else ``.topicops`` in the working folder."""
    return Path(os.environ.get("TOPICOPS_HOME") or ".topicops").absolute()


def audit_folder(home: Path) -> Path:
    """Where the audit logs are, one for each environment."""
    return home / "audit"


def no_progress(_: str) -> None:
    """Take a line of progress and drop it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run; opening it again gives the same one."""

    store: ArtifactStore
    environment: str
    topics: Path
    home: Path
    name: str
    """``<group>/<run id>``; shown to whoever waits for the lease."""
    connections: ConnectionSource = from_environment
    progress: Callable[[str], None] = no_progress
    """Takes one line of progress."""

    @property
    def desired(self) -> Desired:
        return self.store.read_value("desired.json", Desired)

    @property
    def live(self) -> ClusterSnapshot:
        return self.store.read_value("live.json", ClusterSnapshot)

    @property
    def delta(self) -> Delta:
        return self.store.read_value("delta.json", Delta)

    @property
    def change_set(self) -> ChangeSet:
        return changes_from_json(self.store.read_text("changes.json"))

    @property
    def plan(self) -> Plan:
        return plan_from_json(self.store.read_text("plan.json"))


def open_run(
    *,
    environment: str,
    topics: Path,
    group: str,
    run_id: str,
    home: Path | None = None,
    connections: ConnectionSource = from_environment,
    progress: Callable[[str], None] = no_progress,
) -> Run:
    """The run whose folder is ``<home>/runs/<group>/<run id>``.

    Args:
        environment: Name of a file in ``topics/environments/``.
        group: ``cli``, or a DAG id.
        connections: Finds a connection by its id.

    """
    home = home or home_folder()
    return Run(
        store=PORT_WRAPPERS.get().store(ArtifactStore(runs_folder(home, group, run_id))),
        environment=environment,
        topics=topics,
        home=home,
        name=f"{group}/{run_id}",
        connections=connections,
        progress=progress,
    )


def now() -> datetime:
    return datetime.now(UTC)


def outcomes_file(action: Action) -> str:
    return f"outcomes-{action}.json"


def baseline_file(kind: str) -> str:
    """What was wrong before a task of that kind sent anything."""
    return f"baseline-{kind}.json"


def note(run: Run, sentences: Sequence[str]) -> None:
    """Keep what the report shall say beside the outcomes; a later task of the run adds to it."""
    if new := [sentence for sentence in sentences if sentence not in notes_of(run)]:
        run.store.write_value(NOTES_FILE, (*notes_of(run), *new))


def notes_of(run: Run) -> tuple[str, ...]:
    return run.store.read_value(NOTES_FILE, tuple[str, ...]) if run.store.has(NOTES_FILE) else ()


def lease_note(environment: Environment) -> str:
    """What an environment without a lease gives up; empty where there is one."""
    if environment.spec.cluster.lease != "none":
        return ""
    place = environment.place_of("cluster.lease")
    return f"no lease ({place}): nothing here keeps two runs from changing the cluster at the same time"


def read_specs(run: Run) -> Validated:
    """Every file of ``topics/``, judged for the run's environment; places in it are named as a plan names them."""
    from topicops.edges.specs.cache import users_cache
    from topicops.edges.specs.git import name_in_repository
    from topicops.edges.specs.reader import shown_folder
    from topicops.steps.specs.plan_paths import with_folder_named
    from topicops.steps.specs.validate import validate

    validated = validate(users_cache().read_tree(run.topics), environment=run.environment, now=now())
    return with_folder_named(validated, read=shown_folder(run.topics), named=name_in_repository(run.topics))


def read_environment(run: Run) -> Environment:
    """The environment as ``validate`` found it, so that a run judges by one; without that step, as files have it now.

    Raises:
        SpecError: With every problem of every file.

    """
    if run.store.has(ENVIRONMENT_FILE):
        return run.store.read_value(ENVIRONMENT_FILE, Environment)
    return read_specs(run).require()[0]


@contextmanager
def cluster_reader(run: Run, environment: Environment) -> Iterator[ZooKeeperReader | KafkaReader]:
    """The live side of an environment, from its ``source``.

    Raises:
        UsageError: The environment names no address, or a connection that cannot be used.
        ClusterUnreachableError: Nobody answers there.
        UnsupportedTargetError: The source is ZooKeeper, and the brokers run with KRaft.

    """
    with ExitStack() as stack:
        if environment.spec.cluster.source == "kafka":
            from topicops.edges.kafka.reader import KafkaReader

            yield stack.enter_context(KafkaReader(kafka_properties(environment, "reader", run.connections)))
        else:
            yield _zookeeper_reader(run, environment, stack)


def broker_defaults(run: Run, environment: Environment) -> Mapping[str, str] | None:
    """What each topic config is on a topic without override; None when no broker answered."""
    from topicops.edges.kafka.broker_questions import BrokerQuestions

    with closing(BrokerQuestions(kafka_properties(environment, "reader", run.connections))) as questions:
        return questions.broker_defaults()


def with_broker_defaults(run: Run, environment: Environment, live: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot with the defaults that it lacks, where the brokers tell them."""
    if live.broker_defaults is not None:
        return live
    return replace(live, broker_defaults=broker_defaults(run, environment))


def _zookeeper_reader(run: Run, environment: Environment, stack: ExitStack) -> ZooKeeperReader:
    from topicops.edges.zookeeper.reader import ZooKeeperReader

    try:
        return stack.enter_context(ZooKeeperReader(zookeeper_address(environment, run.connections)))
    except (UsageError, ClusterUnreachableError) as error:
        _refuse_kraft(run, environment, error)
        raise


def _refuse_kraft(run: Run, environment: Environment, error: Exception) -> None:
    """Raise ``UnsupportedTargetError`` where the brokers say why there is no ZooKeeper; silent ones tell nothing."""
    from topicops.edges.kafka.quorum import quorum_of

    try:
        quorum = quorum_of(kafka_properties(environment, "reader", run.connections))
    except (UsageError, ClusterError):
        return
    if quorum is not None:
        raise UnsupportedTargetError(
            f"{environment.place_of('cluster.source')}: the brokers run with KRaft, and no ZooKeeper rules them; "
            "set `source: kafka`, and `lease: file` or `lease: none`"
        ) from error


def load_plan(path: Path) -> Plan:
    """A saved plan. Raises ``ArtifactError`` when it is missing, damaged or of an unknown format."""
    try:
        return plan_from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path}: no such plan; make one with `topicops plan --out {path}`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: cannot be read: {error}") from error
    except ArtifactError as error:
        raise type(error)(f"{path}: {error}") from error


def save_plan(plan: Plan, path: Path) -> None:
    try:
        path.write_text(plan_to_json(plan), encoding="utf-8")
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written: {error.strerror}") from error
