"""Where something may stand between a run and the world: nothing in a real run, a test's own ports in a test.

``topicops.testing.killable`` sets them, so that a process can be made to die at a named step of the protocol.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from topicops.edges.home.artifacts import ArtifactStore
    from topicops.model.ports import AuditLog, Journal, Lease, LiveReader, TopicAdmin


class PortWrappers:
    """Gives each port back as it is."""

    def store(self, store: ArtifactStore) -> ArtifactStore:
        return store

    def lease(self, lease: AbstractContextManager[Lease]) -> AbstractContextManager[Lease]:
        return lease

    def reader(self, reader: LiveReader) -> LiveReader:
        return reader

    def admin(self, admin: TopicAdmin) -> TopicAdmin:
        return admin

    def journal(self, journal: Journal) -> Journal:
        return journal

    def audit(self, audit: AuditLog) -> AuditLog:
        return audit

    def earlier_journal(self, journal: Journal) -> Journal:
        """Of a run that ended in the middle, while what it left open is settled."""
        return journal

    def earlier_audit(self, audit: AuditLog) -> AuditLog:
        return audit


PORT_WRAPPERS: ContextVar[PortWrappers] = ContextVar("SEAMS", default=PortWrappers())  # noqa: B039 - it has no state
