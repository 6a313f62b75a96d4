"""What the runs of an environment learn of accepted moves: a plan takes them for granted, verify does not wait."""

from __future__ import annotations

from datetime import datetime

from topicops.edges.places import Place
from topicops.features.moves.record import FOLLOWER_LIST, LEADER_LIST, Stage, TopicMove, read_moves
from topicops.features.moves.telling.status import stands_still, status_of
from topicops.model.runs.moves import KnownMoves, TopicMoves


def known_moves(home: Place, environment: str) -> KnownMoves:
    """Implements ``flow.runs.access.Moves.known``, by the record."""
    record = read_moves(home, environment)
    if record is None:
        return KnownMoves()
    told = zip(record.topics, status_of(environment, record).topics, strict=True)
    return KnownMoves(
        cluster_id=record.cluster_id,
        topics={move.topic: _known(move, status.text, record.stepped_at) for move, status in told},
        rates=[owned.broker for owned in record.rates],
        notes=record.notes,
        stepped_at=record.stepped_at,
    )


def _known(move: TopicMove, sentence: str, measured_at: datetime | None) -> TopicMoves:
    return TopicMoves(
        identity=move.identity,
        digest=move.digest,
        partitions=move.partitions.keys(),
        asked=[p for p, found in move.partitions.items() if found.stage is not Stage.ACCEPTED],
        targets={p: found.target for p, found in move.partitions.items() if found.stage is not Stage.CANCELLING},
        sentence=sentence,
        is_stuck=any(stands_still(found, measured_at) for found in move.partitions.values()),
        entries={LEADER_LIST: move.leader_entries, FOLLOWER_LIST: move.follower_entries},
    )
