"""Inspect without changing: a cluster's topics, its drift from the files, and the audit logs."""

from __future__ import annotations

from dataclasses import dataclass

from topicops.edges.home.audit_files import audited_environments, read_audit_log
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import (
    DELTA_FILE,
    CountedSummary,
    Run,
    audit_folder,
    home_folder,
    read_environment,
)
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.runs.audit import AuditFile
from topicops.steps.planning.cluster_guard import require_cluster_id
from topicops.steps.planning.drift import counted, drift
from topicops.steps.reporting.cluster.drift_text import drift_lines, drift_summary


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSummary(CountedSummary):
    """How many differences are of each kind."""

    summary: str
    differences: int


def record_drift(run: Run, *, only: str | None = None) -> DriftSummary:
    """``drift.json``, and a line for each difference between the files and the snapshot of this run."""
    delta = run.read_delta() if run.store.has(DELTA_FILE) else None
    found = drift(run.read_desired(), run.read_live(), read_environment(run), only=only, delta=delta)
    for line in drift_lines(found.drift):
        run.progress(line)
    summary = drift_summary(found)
    run.progress(summary)
    path = run.store.write_json("drift.json", found)
    counts = {kind.value: number for kind, number in counted(found.drift).items()}
    return DriftSummary(path=str(path), summary=summary, differences=len(found.drift), counts=counts)


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
