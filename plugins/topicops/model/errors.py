"""One tree of errors; a class for each thing that a caller may do about one.

Every message says where, what and what next. ``exit_status`` is the status with which the command ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from topicops.model.exit_status import ExitStatus

if TYPE_CHECKING:
    from topicops.model.specs.diagnostics import Diagnostic


class TopicopsError(Exception):
    """Something a person can act on; its text is the whole answer, no traceback is shown."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.ERROR
    code: ClassVar[str | None] = None


class UsageError(TopicopsError):
    """The command line, or a setting in the environment variables, cannot be used."""


class SpecError(TopicopsError):
    """The files under ``topics/`` have problems; all of them are in ``diagnostics``, warnings included."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        errors = sum(d.is_error for d in self.diagnostics)
        super().__init__(f"{errors} error(s) in the specs")


class SpecFileError(TopicopsError):
    """A spec file could not be written: another stands in its place, it changed meanwhile, or the disk refuses."""


class ClusterError(TopicopsError):
    """ZooKeeper or the brokers answered with an error, or not at all; nothing was concluded from it."""


class ClusterUnreachableError(ClusterError):
    """No connection could be made, or it was lost while reading."""


class ConnectionSecurityError(ClusterError):
    """A connection and the servers do not agree on how it is secured; another try would end the same way."""


class LoginRefusedError(ConnectionSecurityError):
    """The servers refuse the user or the password, or want a login and were given none."""


class CertificateError(ConnectionSecurityError):
    """One side of a TLS connection does not trust the other's certificate."""


class UndecodableZnodeError(ClusterError):
    """A znode holds what Kafka could not read, or what only a newer Kafka writes."""

    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {problem}" + (f"; {remedy}" if remedy else ""))


class WrongTargetError(TopicopsError):
    """The cluster that answered is not the one the environment names, or ZooKeeper does not rule it."""

    exit_status = ExitStatus.WRONG_CLUSTER
    code = "TOP504"


class UnsupportedTargetError(WrongTargetError):
    """KRaft, or a migration to it: ZooKeeper is only a copy."""

    code = "TOP801"


class ShrunkenWorldError(WrongTargetError):
    """Too many topics are gone since the last good snapshot."""

    code = "TOP416"


class LeaseHeldError(TopicopsError):
    """Another run holds the lease of this cluster."""

    exit_status = ExitStatus.LEASE_HELD
    code = "TOP502"


class LeaseLostError(TopicopsError):
    """The lease is no longer ours; nothing more may be sent."""

    code = "TOP503"


class ArtifactError(TopicopsError):
    """A file of a run is missing, damaged, or of a format version that is not known."""

    code = "TOP509"


class FormatVersionError(ArtifactError):
    """The file was written by a newer major format."""

    code = "TOP511"


class UnrecordedError(ArtifactError):
    """Requests were sent to the cluster, and the file that says what came of them could not be written."""

    exit_status = ExitStatus.PARTLY_DONE


class DiffError(TopicopsError):
    """The comparison does not add up: a key stands twice, or a topic is in no class or in two."""


class LocalClusterError(TopicopsError):
    """The embedded cluster could not be started, found or stopped."""
