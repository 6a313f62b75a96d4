"""The topic index of an environment: ``<home>/topic-index/<environment>.sqlite``, whole or not there.

SQLite, so that a page of 50 topics is read without the other 50,000. A run writes a new file and gives it the name of
the old one; a reader of the old one reads it to its end.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

from topicops.edges.durable_files import make_folder, write_atomically
from topicops.edges.home.artifacts import name_on_disk
from topicops.edges.places import Place, StoredPath, scratch_folder
from topicops.features.topic_pages.values import (
    RANKS,
    TROUBLE,
    BrokerShare,
    IndexedTopic,
    IndexHead,
    LastChange,
    ListedRow,
    Order,
    PlannedChange,
    TopicsPage,
    TopicsWanted,
    Word,
    later_words,
)
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.runs.results import IN_PLACE, OutcomeStatus

T = TypeVar("T")
NONE_LATER: Mapping[str, OutcomeStatus] = MappingProxyType({})
OWNERS_SHOWN = 12
_SCHEMA = """
CREATE TABLE head (value TEXT NOT NULL);
CREATE TABLE looked_at (value TEXT NOT NULL, audit_marks TEXT NOT NULL);
CREATE TABLE topics (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER, replication_factor INTEGER, offline INTEGER,
  under_min_isr INTEGER, under_replicated INTEGER, owner TEXT, place TEXT, changed_at TEXT, changed TEXT, words TEXT,
  rank INTEGER, found_by TEXT, detail TEXT
);
CREATE TABLE words (word TEXT, topic INTEGER, PRIMARY KEY (word, topic)) WITHOUT ROWID;
CREATE TABLE shares (
  topic INTEGER, broker INTEGER, replicas INTEGER, leaders INTEGER, missing INTEGER, PRIMARY KEY (topic, broker)
) WITHOUT ROWID;
"""
_INDEXES = "CREATE INDEX by_broker ON shares (broker, missing, topic); CREATE INDEX by_owner ON topics (owner);"
_ORDERS: Mapping[Order, str] = {
    "trouble": "rank, offline DESC, under_min_isr DESC, under_replicated DESC, name",
    "name": "name",
    "partitions": "partitions DESC, name",
    "owner": "owner, name",
    "changed": "changed_at DESC, name",
}
_LISTED = "id, words, name, partitions, replication_factor, offline, under_replicated, owner, place, changed"
_LATER = """
CREATE TEMP TABLE later AS SELECT id, name, '' AS words, 0 AS rank FROM topics WHERE 0;
CREATE TEMP VIEW known AS
  SELECT t.id, t.name, coalesce(l.words, t.words) AS words, partitions, replication_factor,
    iif(l.id, 0, offline) AS offline, iif(l.id, 0, under_min_isr) AS under_min_isr,
    iif(l.id, 0, under_replicated) AS under_replicated, owner, place, changed_at, changed,
    coalesce(l.rank, t.rank) AS rank, found_by
  FROM topics t LEFT JOIN later l ON l.id = t.id;
CREATE TEMP VIEW known_words AS
  SELECT word, topic FROM words WHERE topic NOT IN (SELECT id FROM later)
  UNION ALL SELECT 'changed since', id FROM later
  UNION ALL SELECT 'change failed', id FROM later WHERE words LIKE '%change failed%'
  UNION ALL SELECT 'moving', id FROM later WHERE words LIKE '%moving%';
CREATE TEMP VIEW known_shares AS SELECT * FROM shares WHERE topic NOT IN (SELECT id FROM later);
"""
"""The tables without what is not so any more of the topics that were changed later."""
_COUNTED_WORDS = "SELECT word, count(*) FROM known_words GROUP BY word ORDER BY 2 DESC"
_COUNTED_OWNERS = f"""
SELECT owner, count(*) FROM topics WHERE owner != '' GROUP BY owner ORDER BY 2 DESC, 1 LIMIT {OWNERS_SHOWN}
"""  # noqa: S608


def indexed_environments(home: Place) -> tuple[str, ...]:
    """Name the environments that have an index that can be read, sorted."""
    names = []
    for path in (home / "topic-index").glob("*.sqlite"):
        with suppress(ArtifactError):
            names.append(TopicIndex(path).head().environment)
    return tuple(sorted(names))


class TopicIndex:
    """The index in a file, which need not be there. Every problem is an ``ArtifactError``.

    That of a store is copied to this host when it is read, and back when it is written.
    """

    def __init__(self, place: Place) -> None:
        self.place, self.path = place, scratch_folder(place)

    def is_there(self) -> bool:
        with self._errors("cannot be read"):
            return self.place.exists()

    @classmethod
    def of(cls, home: Place, environment: str) -> TopicIndex:
        return cls(home / "topic-index" / f"{name_on_disk(environment)}.sqlite")

    def write(self, head: IndexHead, topics: Iterable[IndexedTopic]) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        with self._errors("cannot be written"):
            try:
                make_folder(self.path.parent)
                with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                    connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA} BEGIN;")
                    connection.execute("INSERT INTO head VALUES (?)", (_json(head),))
                    for number, topic in enumerate(topics):
                        _insert(connection, number, topic)
                    connection.executescript(f"{_INDEXES} ANALYZE;")  # it commits first
                if not isinstance(self.place, Path):
                    write_atomically(self.place, temporary.read_bytes())
                    return  # the next reader fetches it
                temporary.replace(self.path)
            finally:
                temporary.unlink(missing_ok=True)

    def note_look(self, at: datetime, audit_marks: Mapping[str, int]) -> None:
        """Note that a later run has found nothing different; ``audit_marks`` are of before it read the cluster."""
        with self._errors("cannot be written"), closing(sqlite3.connect(self._existing("rw"), uri=True)) as found:
            found.execute("DELETE FROM looked_at")
            found.execute("INSERT INTO looked_at VALUES (?,?)", (at.isoformat(), _json(audit_marks)))
            found.commit()
            if not isinstance(self.place, Path):
                write_atomically(self.place, self.path.read_bytes())

    def head(self) -> IndexHead:
        with self._open() as connection:
            (text,) = connection.execute("SELECT value FROM head").fetchone()
            look = connection.execute("SELECT value, audit_marks FROM looked_at").fetchone()
        head = self._decoded(text, IndexHead)
        if look is None:
            return head
        marks = self._decoded(look[1], dict[str, int])
        return replace(head, looked_at=datetime.fromisoformat(look[0]), audit_marks=marks)

    def page(self, wanted: TopicsWanted, later: Mapping[str, OutcomeStatus] = NONE_LATER) -> TopicsPage:
        """Read the topics that are wanted, in order, and count those of each state and owner.

        The states of topics that were changed ``later``, after the reading, are not known any more.
        """
        where, values = _where(wanted)
        with self._open(later) as connection:
            (topics,) = connection.execute("SELECT count(*) FROM topics").fetchone()
            (found,) = connection.execute(f"SELECT count(*) FROM known {where}", values).fetchone()  # noqa: S608
            rows = connection.execute(
                f"SELECT {_LISTED} FROM known {where} ORDER BY {_ORDERS[wanted.order]} LIMIT ? OFFSET ?",  # noqa: S608
                (*values, wanted.most, wanted.first),
            ).fetchall()
            shares = _shares(connection, [row[0] for row in rows])
            words = dict(connection.execute(_COUNTED_WORDS))
            owners = dict(connection.execute(_COUNTED_OWNERS))
        listed = [ListedRow._make((name, _words(words), *rest, shares[id])) for id, words, name, *rest in rows]  # noqa: A001
        return TopicsPage(topics, found, listed, words, owners)

    def words(self, later: Mapping[str, OutcomeStatus]) -> Mapping[Word, int]:
        """Count the topics in each state."""
        with self._open(later) as connection:
            return dict(connection.execute(_COUNTED_WORDS))

    def topic(self, name: str) -> IndexedTopic | None:
        with self._open() as connection:
            row = connection.execute("SELECT detail FROM topics WHERE name = ?", (name,)).fetchone()
        return self._decoded(row[0], IndexedTopic) if row else None

    def brokers(self) -> Mapping[int, BrokerShare]:
        """Sum the shares of each broker that has a replica, over all topics."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT broker, sum(replicas), sum(leaders), sum(missing), sum(missing > 0) FROM shares "
                "GROUP BY broker ORDER BY broker"
            ).fetchall()
        return {row[0]: BrokerShare(*row) for row in rows}

    def last_changes(self) -> Mapping[str, LastChange]:
        """Read the last change of each topic that topicops has changed and that is still there."""
        return self._of_topics("last_change", LastChange, "changed != ''")

    def planned(self) -> Mapping[str, tuple[PlannedChange, ...]]:
        """Read what plans have about topics, by topic; only of topics that have something."""
        return self._of_topics("planned", tuple[PlannedChange, ...], "json_array_length(detail, '$.planned') > 0")

    def _of_topics(self, field: str, kind: type[T], where: str) -> Mapping[str, T]:
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT name, json_extract(detail, '$.{field}') FROM topics WHERE {where}"  # noqa: S608
            ).fetchall()
        return {name: self._decoded(text, kind) for name, text in rows}

    @contextmanager
    def _open(self, later: Mapping[str, OutcomeStatus] | None = None) -> Iterator[sqlite3.Connection]:
        """Open it to read; with ``later``, the views ``known``, ``known_words`` and ``known_shares`` are there."""
        with self._errors("cannot be read"), closing(sqlite3.connect(self._existing("ro"), uri=True)) as connection:
            if later is not None:
                connection.executescript(_LATER)
                for name, status in later.items():
                    words = later_words(status)
                    connection.execute(
                        "INSERT INTO later SELECT id, name, ?, ? FROM topics WHERE name = ?",
                        (",".join(words), RANKS[words[0]], name),
                    )
            yield connection

    def _existing(self, mode: str) -> str:
        if not isinstance(self.place, Path):
            self._fetch(self.place)
        if not self.path.exists():
            raise ArtifactError(f"{self.path.name}: missing: no run has read this environment's topics yet")
        return f"{self.path.absolute().as_uri()}?mode={mode}"

    def _fetch(self, place: StoredPath) -> None:
        """Copy it to this host, unless the copy here is as new; a page in another thread reads the old copy on."""
        with self._errors("cannot be read"):
            try:
                written = place.bucket.head(place.key).timestamp()
            except FileNotFoundError:
                self.path.unlink(missing_ok=True)
                return
            if not self.path.exists() or self.path.stat().st_mtime != written:
                found = place.bucket.read(place.key)
                temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
                make_folder(temporary.parent)
                temporary.write_bytes(found.content)
                os.utime(temporary, (found.written_at.timestamp(),) * 2)
                temporary.replace(self.path)

    def _decoded(self, text: str, kind: type[T]) -> T:
        try:
            with json_errors():
                return msgspec.json.decode(text, type=known(kind))
        except JsonError as error:
            raise ArtifactError(f"{self.path.name}: damaged: {error}; the next full run writes it again") from error

    @contextmanager
    def _errors(self, problem: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, TypeError) as error:
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            raise ArtifactError(f"{self.path.name}: {problem}: {reason}; the next full run writes it again") from error


def _insert(connection: sqlite3.Connection, number: int, topic: IndexedTopic) -> None:
    spec, change = topic.desired, topic.last_change
    owner = spec.owner if spec else ""
    place = f"{spec.location.file}:{spec.location.line}" if spec else ""
    connection.execute(
        "INSERT INTO topics VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            number, topic.name, topic.partitions, topic.replication_factor, topic.offline, topic.under_min_isr,
            topic.under_replicated, owner, place, change.at.isoformat() if change else "",
            _changed(change) if change else "",
            ",".join(sorted(topic.words)), min(map(RANKS.__getitem__, topic.words), default=len(RANKS)),
            f"{topic.name}\n{owner}\n{place}".casefold(), _json(topic),
        ),
    )  # fmt: skip
    connection.executemany("INSERT INTO words VALUES (?,?)", [(word, number) for word in topic.words])
    connection.executemany("INSERT INTO shares VALUES (?,?,?,?,?)", [(number, *share[:4]) for share in topic.shares])


def _changed(change: LastChange) -> str:
    outcome = "" if change.outcome in IN_PLACE else f" {change.outcome.value},"
    return f"{change.at:%Y-%m-%d %H:%M} {change.action}{outcome} by {change.by}"


def _where(wanted: TopicsWanted) -> tuple[str, Sequence[object]]:
    parts: list[str] = []
    values: list[object] = []
    if wanted.q:
        parts.append("instr(found_by, ?) > 0")
        values.append(wanted.q.casefold())
    if wanted.owner:
        parts.append("owner = ?")
        values.append(wanted.owner)
    if wanted.state:
        parts.append("id IN (SELECT topic FROM known_words WHERE word = ?)")
        values.append(wanted.state)
    if wanted.broker is not None:
        parts.append("id IN (SELECT topic FROM known_shares WHERE broker = ? AND missing >= ?)")
        values += [wanted.broker, int(wanted.state in TROUBLE)]
    return f"WHERE {' AND '.join(parts)}" if parts else "", values


def _shares(connection: sqlite3.Connection, ids: Sequence[int]) -> Mapping[int, Mapping[int, BrokerShare]]:
    rows = connection.execute(
        "SELECT topic, broker, replicas, leaders, missing FROM known_shares "  # noqa: S608
        f"WHERE topic IN ({','.join('?' * len(ids))})",
        ids,
    )
    found: dict[int, dict[int, BrokerShare]] = defaultdict(dict)
    for topic, *share in rows:
        found[topic][share[0]] = BrokerShare(*share)
    return found


def _words(text: str) -> tuple[Word, ...]:
    return tuple(text.split(",")) if text else ()  # type: ignore[arg-type]  # as _insert wrote them


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
