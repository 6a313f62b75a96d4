"""What moves replicas: it plans the moves, and carries out those that are approved. A feature adds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from topicops.edges.home.audit_log import AuditOrigin
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import Run
from topicops.model.ports import LiveReader, Mover
from topicops.model.specs.desired import Desired
from topicops.steps.planning.moves import MovePlanner, NoPlanner

if TYPE_CHECKING:
    from topicops.model.ports import Lease


class Moves(MovePlanner, Protocol):
    """Plans moves, and gives what carries them out."""

    def mover(
        self,
        run: Run,
        access: Access,
        *,
        reader: LiveReader,
        lease: Lease,
        desired: Desired,
        approvers: Mapping[str, str],
        origin: AuditOrigin,
    ) -> Mover | None:
        """Return the mover of one apply, which holds the lease; None: reassignments are refused.

        Apply has checked the cluster's identity, and judged each change again by the files and the cluster of now.
        Nothing is opened before ``Mover.begin``.

        Args:
            desired: The files of now, by which the step learns whether they still ask for a move.
            approvers: Approver of each change whose approval counts, by digest.
            origin: Origin of the lines that the mover adds to the audit log; its principals have ``reassign``.
        """


class _NoMoves(NoPlanner):
    def mover(self, *_: object, **__: object) -> None:
        return None


NO_MOVES: Moves = _NoMoves()
"""Stands in where no feature moves replicas."""
