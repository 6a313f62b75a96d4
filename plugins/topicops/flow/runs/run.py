"""One run: its folder, what it reads from it, and how it reaches the cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.connections.lookup import from_environment
from topicops.edges.durable_files import as_artifact_error, make_folder
from topicops.edges.home.artifacts import ArtifactStore, runs_folder
from topicops.edges.places import Place as Place
from topicops.edges.places import home_at
from topicops.edges.places import scratch_folder as scratch_folder
from topicops.edges.places import written_at as written_at
from topicops.edges.repository import home_of
from topicops.flow.runs.access import NO_MOVES, PORT_WRAPPERS, Access, Moves
from topicops.flow.runs.files import SpecFiles, read_specs
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.plans.plan_file import changes_from_json, plan_from_json, plan_to_json
from topicops.model.ports import Clock, ConnectionSource
from topicops.model.runs.moves import KnownMoves
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder

READING_FILE = "run.json"
DESIRED_FILE = "desired.json"
LIVE_FILE = "live.json"
DELTA_FILE = "delta.json"
CHANGES_FILE = "changes.json"
CHECKS_FILE = "checks.json"
ENVIRONMENT_FILE = "environment.json"
PLAN_FILE = "plan.json"
TABLES_FILE = "tables.json"
"""Says that the run keeps its data in columns, and where."""
NOTES_FILE = "notes.json"
DRIFT_FILE = "drift.json"
DIAGNOSTICS_FILE = "diagnostics.json"
"""File with the problems that ended a run in validate."""
FILES_COMMIT = "files-commit"
"""The commit of the files that validate has read; empty: not known."""
COMMIT_ADDRESS = "commit-address.txt"
"""Address of the files' commit at the forge, if known."""
HOME_NOT_SET = "each copy of the repository has its own audit log, journals and topic count"
KINDS = ("all", *ACTIONS)
"""Kinds of change that one task of a run applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesFile:
    """What ``tables.json`` says."""

    format_version: str
    place: str
    """Place of the file, as ``edges.tables.table_folder`` writes it."""
    environment: str
    run: str
    cluster_id: str | None
    """Id that the environment's file names."""
    began_at: datetime
    """Time at which the run began its tables, UTC."""


def home_folder() -> Place:
    """Return where runs are kept: ``$TOPICOPS_HOME``, else ``.topicops`` of the repository.

    Outside a repository it is ``.topicops`` in the working folder. Raises ``UsageError``: the URL cannot be used.
    """
    named = os.environ.get("TOPICOPS_HOME")
    return home_at(named) if named else home_of(Path.cwd())


def home_is_set() -> bool:
    """Return whether the home is the same for every copy of the repository."""
    return bool(os.environ.get("TOPICOPS_HOME"))


def tables_uri() -> str | None:
    """Return where runs keep their tables, ``$TOPICOPS_TABLES``; None means each in its own folder."""
    return os.environ.get("TOPICOPS_TABLES") or None


def audit_folder(home: Place) -> Place:
    """Return where the audit logs are, one for each environment."""
    return home / "audit"


def no_progress(_: str) -> None:
    """Take a line of progress and drop it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: a folder, a name, a clock, and who hears how far it is. It knows nothing of files and clusters."""

    store: ArtifactStore
    name: str
    """Name, ``<group>/<run id>``; other runs that wait for the lease show it."""
    clock: Clock
    progress: Callable[[str], None] = no_progress
    """Function that takes one line of progress."""
    moves: Moves = NO_MOVES
    """What plans moves of replicas, carries them out, and knows which it has accepted."""

    def read_desired(self) -> Desired:
        """Read it; with tables, its topics are read when they are asked for."""
        desired, tables = self.store.read_value(DESIRED_FILE, Desired), self.tables()
        if tables is None:
            return desired
        from topicops.edges.tables.topics import read_desired_topics

        return replace(desired, topics=read_desired_topics(tables))

    def read_live(self) -> ClusterSnapshot:
        """Read it; with tables, its topics are read when they are asked for."""
        live, tables = self.store.read_value(LIVE_FILE, ClusterSnapshot), self.tables()
        if tables is None:
            return live
        from topicops.edges.tables.topics import read_live_topics

        return replace(live, topics=read_live_topics(tables))

    def tables(self) -> TableFolder | None:
        """Return the run's data in columns; None if it keeps all topics in ``desired.json`` and ``live.json``."""
        if not self.store.has(TABLES_FILE):
            return None
        from topicops.edges.tables.table_folder import OWN_FOLDER, tables_at

        written = self.store.read_value(TABLES_FILE, TablesFile)
        own = scratch_folder(self.store.folder)
        if own != self.store.folder and written.place == OWN_FOLDER and not (own / OWN_FOLDER).exists():
            raise ArtifactError(
                f"{self.store.path(TABLES_FILE)}: the tables of this run are on the host that wrote them, and "
                "TOPICOPS_HOME is an object store: set TOPICOPS_TABLES to a URI that all hosts reach, then run it again"
            )
        return replace(tables_at(written.place, tables_uri(), own), of_run=asdict(written))

    def known_tables(self) -> TableFolder:
        """Return ``tables``. Raises ``ArtifactError`` in a run that keeps none."""
        if (tables := self.tables()) is None:
            raise ArtifactError(f"{self.store.path(TABLES_FILE)}: missing: this run has no tables; start a new one")
        return tables

    def new_tables(self, environment: Environment) -> TableFolder:
        """Have the run keep its data in columns from now on."""
        from topicops.edges.tables.table_folder import OWN_FOLDER, place_of_tables

        own = scratch_folder(self.store.folder)
        if own != self.store.folder:
            with as_artifact_error(own, "cannot be written", "; check the disk"):
                make_folder(own / OWN_FOLDER)  # its absence tells another host that they are not there
        file = TablesFile(
            format_version="1.0",
            place=place_of_tables(tables_uri(), own),
            environment=environment.name,
            run=self.name,
            cluster_id=environment.spec.cluster.id,
            began_at=now(),
        )
        self.store.write_value(TABLES_FILE, file)
        return self.known_tables()

    def read_delta(self) -> Delta:
        return self.store.read_value(DELTA_FILE, Delta)

    def read_change_set(self) -> ChangeSet:
        return changes_from_json(self.store.read_text(CHANGES_FILE))

    def read_plan(self) -> Plan:
        return plan_from_json(self.store.read_text(PLAN_FILE))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRun(Run):
    """A run about one environment. The top of a step takes it; below that, each function takes what it needs of it."""

    files: SpecFiles
    home: Place
    connections: ConnectionSource = from_environment

    @property
    def environment(self) -> str:
        return self.files.environment

    @property
    def topics(self) -> Path:
        return self.files.topics

    def access(self, environment: Environment) -> Access:
        """Say how this run reaches the environment's cluster."""
        return Access(
            environment=environment, run=self.name, home=self.home, connections=self.connections, moves=self.moves
        )

    def known_moves(self) -> KnownMoves:
        return self.moves.known(self.home, self.environment)


def open_run(
    *,
    environment: str,
    topics: Path,
    group: str,
    run_id: str,
    home: Place | None = None,
    connections: ConnectionSource = from_environment,
    progress: Callable[[str], None] = no_progress,
    version: str | None = None,
    pinned: str | None = None,
    part: str | None = None,
    moves: Moves = NO_MOVES,
) -> EnvironmentRun:
    """Return the run whose folder is ``<home>/runs/<group>/<run id>``.

    Args:
        environment: Name of a file in ``topics/environments/``.
        group: ``cli``, or a DAG id.
        connections: Finds a connection by its id.
        version: The commit of the files, where git itself cannot say.
        pinned: The commit that the files must be of.
        part: One environment of a run of many: a folder of its own in the run's.
        moves: What plans and verifies needs it: else it takes accepted moves for those of somebody else.
    """
    home = home or home_folder()
    folder = runs_folder(home, group, run_id)
    return EnvironmentRun(
        store=PORT_WRAPPERS.get().store(ArtifactStore(folder / part if part else folder)),
        name="/".join((group, run_id, *([part] if part else []))),
        clock=Clock(),
        progress=progress,
        moves=moves,
        files=SpecFiles(topics=topics, environment=environment, version=version, pinned=pinned),
        home=home,
        connections=cache(connections),
    )


def now() -> datetime:
    return datetime.now(UTC)


def outcomes_file(action: Action) -> str:
    return f"outcomes-{action}.json"


def baseline_file(kind: str) -> str:
    """Return what was wrong before a task of that kind sent anything."""
    return f"baseline-{kind}.json"


class Notes:
    """Sentences that the report shows beside the outcomes: kept in the run's folder, and known here."""

    def __init__(self, run: Run, sentences: Sequence[str] = ()) -> None:
        self._store, self.sentences = run.store, tuple(sentences)

    def add(self, sentences: Iterable[str]) -> None:
        """Keep each sentence once. Raises ``ArtifactError``."""
        if new := tuple(dict.fromkeys(sentence for sentence in sentences if sentence not in self.sentences)):
            self.sentences += new
            self._store.write_value(NOTES_FILE, self.sentences)


def note(run: Run, sentences: Iterable[str]) -> None:
    """Keep what the report shall say beside the outcomes, and what earlier tasks of the run have kept."""
    Notes(run, notes_of(run)).add(sentences)


def notes_of(run: Run) -> tuple[str, ...]:
    return run.store.read_if_there(NOTES_FILE, tuple[str, ...]) or ()


def safety_notes(environment: Environment) -> Iterator[str]:
    """Yield what the environment's lease cannot keep apart, and what a home that is not set gives up."""
    cluster, place = environment.spec.cluster, environment.place_of("cluster.lease")
    if cluster.lease == "none":
        yield f"no lease ({place}): nothing here keeps two runs from changing the cluster at the same time"
    if cluster.lease in ("file", "home") and isinstance(home_folder(), Path):
        yield (
            f"the lease is a file ({place}): it does not stop a run of another host or account, unless they share this "
            "TOPICOPS_HOME"
        )
    if cluster.cluster_class == "production" and not home_is_set():
        yield f"TOPICOPS_HOME is not set, in class production: {HOME_NOT_SET}"


def read_environment(run: EnvironmentRun) -> Environment:
    """Return the environment as ``validate`` found it, so that a run judges by one; else as files have it now.

    Raises ``SpecError`` with every problem of every file.
    """
    if run.store.has(ENVIRONMENT_FILE):
        return run.store.read_value(ENVIRONMENT_FILE, Environment)
    return read_specs(run.files).require()[0]


def load_plan(path: Path) -> Plan:
    """Return a saved plan. Raises ``ArtifactError`` when it is missing, damaged or of an unknown format."""
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
