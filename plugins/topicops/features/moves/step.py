"""One step of the moves of an environment: what ended is taken out, and what may start is started.

A step takes seconds, and waits for no copy. Any later step, by anybody who holds the lease, goes on from the record and
from what Kafka lists.
"""

from __future__ import annotations

from collections.abc import Callable

from topicops.features.moves.ports import MoveCluster
from topicops.features.moves.records import accept, asked_to_cancel
from topicops.features.moves.values import MoveSettings, Sent, Stepped
from topicops.model.ports import Clock
from topicops.model.runs.moves import MovesRecord, TopicMove

__all__ = ["accept", "asked_to_cancel", "make_step"]


def make_step(
    record: MovesRecord,
    cluster: MoveCluster,
    *,
    settings: MoveSettings,
    keep: Callable[[MovesRecord], None],
    confirm: Callable[[], None],
    still_asked: Callable[[TopicMove], str],
    clock: Clock,
    tell: Callable[[Sent], None],
) -> Stepped:
    """Make one step, and return what it did; an unclear answer in its middle ends it early, with a note.

    Args:
        keep: Writes the record durably; called before each request that the record explains.
        confirm: Raises ``LeaseLostError`` unless the lease is held; called right before each alter.
        still_asked: Gives the reason why the files ask for a move no longer; empty means that they do.
        tell: Takes one line for the audit log after the answer to each request.
    Raises:
        ClusterError: The cluster could not be read; nothing was sent.
        LeaseLostError: Another run may act by now; nothing more was sent.
    """
    raise NotImplementedError
