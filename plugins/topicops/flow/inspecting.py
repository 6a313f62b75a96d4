"""Inspect without changing: a cluster's topics, and the audit logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topicops.edges.home.audit_files import audited_environments, last_line_number, read_audit_log
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import Run, audit_folder, home_folder
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.runs.audit import AuditFile
from topicops.model.runs.facts import FactsWhen
from topicops.steps.planning.cluster_guard import require_cluster_id


def audit_files(environment: str | None) -> tuple[AuditFile, ...]:
    """The audit log of one environment, or all there are. Opens no connection.

    Raises:
        UsageError: The environment has none.
        ArtifactError: A log cannot be read.
    """
    folder = audit_folder(home_folder())
    known = audited_environments(folder)
    if environment is not None and environment not in known:
        others = f"there are logs of {', '.join(known)}" if known else "nothing was ever sent from this TOPICOPS_HOME"
        raise UsageError(f"{folder}: no audit log of {environment}; {others}")
    return tuple(read_audit_log(folder, name) for name in ([environment] if environment else known))


def read_live_topics(access: Access, *, states: bool = False) -> ClusterSnapshot:
    """The environment's own cluster as it is now. Raises ``WrongTargetError`` for another one."""
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), access.environment)
        return reader.snapshot(states=states)


def note_reading(run: Run, home: Path, when: FactsWhen) -> None:
    """Before the cluster is read: keep how many changes were sent so far."""
    run.store.write_value(_marks_file(when), audit_marks(home))


def reading_marks(run: Run, when: FactsWhen) -> Mapping[str, int]:
    """Read what ``note_reading`` left; empty if it left nothing: then each change counts as later."""
    return run.store.read_value(_marks_file(when), dict[str, int]) if run.store.has(_marks_file(when)) else {}


def audit_marks(home: Path) -> Mapping[str, int]:
    """Give the number of the last line of each audit log, by environment."""
    folder = audit_folder(home)
    return {name: last_line_number(folder, name) for name in audited_environments(folder)}


def _marks_file(when: FactsWhen) -> str:
    return f"audit-lines-{when}.json"
