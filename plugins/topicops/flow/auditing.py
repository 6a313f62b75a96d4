"""The audit logs, for whoever wants to read or check them. No connection is opened."""

from __future__ import annotations

from topicops.edges.home.audit_log import audited_environments, read_audit_log
from topicops.flow.run import audit_folder, home_folder
from topicops.model.errors import UsageError
from topicops.model.runs.audit import AuditFile


def audit_files(environment: str | None) -> tuple[AuditFile, ...]:
    """The log of one environment, or all there are.

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
