"""One tree of errors, with one class for each way in which a caller may react.

Every message contains the place, the problem and the next step. ``exit_status`` is how the command ends.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

from topicops.model.codes import Code
from topicops.model.printable import plural, printable

if TYPE_CHECKING:
    from topicops.model.specs.diagnostics import Diagnostic


class ExitStatus(IntEnum):
    SUCCESS = 0
    """Success. ``apply``: every change that may run has run, or there was nothing to do."""
    ERROR = 1
    """Invalid files, bad usage, an unreachable cluster or a damaged plan; nothing was changed. ``apply``: it stopped
    early, or the brokers' dry run rejected every change, before anything was sent. ``doctor``: an error was found."""
    CHANGES_PENDING = 2
    """``--detailed-exitcode``: there are changes, blocked topics or differences."""
    NOTHING_MAY_RUN = 3
    """``apply``: nothing could run, because every change is held, skipped or blocked."""
    NOTHING_SENT = 4
    """``apply``: nothing was sent, because each change was refused: its topic changed or is in use, or a broker with
    its replicas is down."""
    LEASE_HELD = 5
    """Another run holds the lease; nothing was changed."""
    PARTLY_DONE = 6
    """``apply``: partly done; or requests were sent and none is known to be in effect; or their outcomes could not be
    recorded. ``moves --watch``: a move was dropped. ``leaders --elect``: the brokers refused an election."""
    NOT_VERIFIED = 7
    """``apply``: applied, but not verified. ``verify``: not healthy."""
    WRONG_CLUSTER = 8
    """Not the cluster that the environment or the plan names, or more topics are gone than ``limits.shrinkPercent``
    allows, or a KRaft cluster where ZooKeeper is the source; nothing was changed."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C; the report says what was changed."""
    TERMINATED = 143
    """Interrupted by SIGTERM; the report says what was changed."""


def status_after_signal(number: int) -> int:
    """Give the status of a process that a signal ended: 128 + its number, as shells count."""
    return 128 + number


class TopicopsError(Exception):
    """A problem that the user can fix; the text explains all, and no traceback is shown."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.ERROR
    code: ClassVar[Code | None] = None


class UsageError(TopicopsError):
    """The command line, or a setting in the environment variables, cannot be used."""


class MissingExtraError(TopicopsError):
    """The install lacks the packages of an extra."""

    def __init__(self, extra: str, title: str) -> None:
        self.extra = extra
        super().__init__(f"{title} is not installed: run pip install 'topicops[{extra}]'")


class UnknownConnectionError(UsageError):
    """There is no connection with this id."""


class SpecError(TopicopsError):
    """The files under ``topics/`` have problems; ``diagnostics`` holds all of them, with the warnings."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        errors = sum(d.is_error for d in self.diagnostics)
        super().__init__(f"{plural(errors, 'error')} in the specs")


class SpecFileError(TopicopsError):
    """A spec file could not be written: the name is taken, the file changed meanwhile, or the disk refuses."""


class ClusterError(TopicopsError):
    """ZooKeeper or the brokers answered with an error, or not at all."""


class ClusterUnreachableError(ClusterError):
    """No connection could be made, or it was lost while reading."""


class ConnectionSecurityError(ClusterError):
    """The security settings of a connection and of its servers differ; another try would fail the same way."""


class LoginRefusedError(ConnectionSecurityError):
    """The servers refuse the user or the password, or want a login and got none."""


class CertificateError(ConnectionSecurityError):
    """The client does not trust the server's TLS certificate, or the server not the client's."""


class UndecodableZnodeError(ClusterError):
    """A znode's data could not be read by Kafka either, or only a newer Kafka writes it."""

    def __init__(self, path: str, problem: str, remedy: str = "", *, stops_controller: bool = False) -> None:
        self.path = path
        self.stops_controller = stops_controller
        """No broker can be the controller while the znode is as it is."""
        super().__init__(f"{path}: {problem}" + (f"; {remedy}" if remedy else ""))


class WrongTargetError(TopicopsError):
    """The cluster that answered is not the one that the environment names, or ZooKeeper does not control it."""

    exit_status = ExitStatus.WRONG_CLUSTER
    code = Code.WRONG_CLUSTER


class NoTopicIdError(ClusterError):
    """A topic without an id, in a cluster that is read from its brokers alone."""

    code = Code.NO_TOPIC_IDS


class UnsupportedTargetError(WrongTargetError):
    """KRaft controls the cluster, or a migration to KRaft has begun: ZooKeeper holds only a copy."""

    code = Code.KRAFT


class OldBrokersError(WrongTargetError):
    """The brokers' release is older than all that topicops supports."""

    code = Code.OLD_BROKERS


class ShrunkenWorldError(WrongTargetError):
    """Too many topics are gone since the last complete snapshot."""

    code = Code.SHRUNKEN_SNAPSHOT


class LeaseHeldError(TopicopsError):
    """Another run holds the lease of this cluster."""

    exit_status = ExitStatus.LEASE_HELD
    code = Code.LEASE_HELD


class StrayLeaseError(TopicopsError):
    """The lease's znode belongs to no session, so no end of a run will ever remove it."""

    code = Code.STRAY_LEASE


class LeaseLostError(TopicopsError):
    """The run has lost the lease; nothing more may be sent."""

    code = Code.SESSION_LOST


class MovedFilesError(TopicopsError):
    """The files are not of the commit that the run works on: main was rewritten, or it moved."""

    code = Code.OTHER_COMMIT


class NotHeldError(TopicopsError):
    """A change that a question is about is no longer due, or waits for no approval."""


class ArtifactError(TopicopsError):
    """A file of a run is missing, damaged, or of a format version that is not known."""

    code = Code.DIGEST_MISMATCH


class FormatVersionError(ArtifactError):
    """The file was written by a newer major format."""

    code = Code.UNKNOWN_FORMAT


class UnrecordedError(ArtifactError):
    """Requests were sent to the cluster, but their outcomes, or the report about them, could not be written."""

    exit_status = ExitStatus.PARTLY_DONE


class DiffError(TopicopsError):
    """The comparison is inconsistent: a key occurs twice, or a topic is in no class or in two."""


class LocalClusterError(TopicopsError):
    """The embedded cluster could not be started, found or stopped."""


_AROUND, _SHOWN = 20, 60
"""Characters of a text around what is wrong with it, and of a long name."""


def sentence(error: Exception) -> str:
    """Return the text of a ``TopicopsError``; of any other error its known cause, or its type and text."""
    if isinstance(error, TopicopsError):
        return str(error)
    return known_cause(error) or f"internal error: {type(error).__name__}: {error}"


def known_cause(error: Exception) -> str:
    """Return what the surroundings do not give, or what is wrong with a name; empty for any other error."""
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return "no memory or no thread is left for this command; raise the container's limit, or ulimit -v and -u"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "this command may open no more files; raise ulimit -n"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{_beginning(str(error.filename or ''))}: this name is too long for the file system; give a shorter one"
    if isinstance(error, UnicodeEncodeError):
        where = error.object[max(0, error.start - _AROUND) : error.end + _AROUND]
        return f"{printable(where)}: this name or text is not UTF-8; rename the file, or write the text as UTF-8"
    return ""


def _beginning(name: str) -> str:
    return printable(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")


def log_error(logger: logging.Logger, what: str, error: Exception, *, level: int = logging.ERROR) -> None:
    """Log ``what`` with the error's sentence; with the traceback too where the level INFO is logged.

    The traceback of a ``TopicopsError``, whose text explains all, is only for the level DEBUG.
    """
    traced = logging.DEBUG if isinstance(error, TopicopsError) else logging.INFO
    traceback = error if logger.isEnabledFor(traced) else None
    logger.log(level, "%s: %s", what, printable(sentence(error)), exc_info=traceback)
