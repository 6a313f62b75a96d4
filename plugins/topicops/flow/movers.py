"""What hands approved moves of replicas to the feature that carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from topicops.edges.home.audit_log import AuditOrigin
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import Run
from topicops.model.ports import LiveReader, Mover
from topicops.model.specs.desired import Desired

if TYPE_CHECKING:
    from topicops.model.ports import Lease


class MoverFactory(Protocol):
    """Gives what moves replicas to one apply, which holds the lease. Nothing is opened before ``Mover.begin``.

    Apply has checked the cluster's identity, and judged each change again by the files and the cluster of now.
    """

    def __call__(
        self,
        run: Run,
        access: Access,
        *,
        reader: LiveReader,
        lease: Lease,
        desired: Desired,
        approvers: Mapping[str, str],
        origin: AuditOrigin,
    ) -> Mover:
        """Return the mover.

        Args:
            desired: The files of now, by which the step learns whether they still ask for a move.
            approvers: Approver of each change whose approval counts, by digest.
            origin: Origin of the lines that the mover adds to the audit log; its principals have ``reassign``.
        """
        ...
