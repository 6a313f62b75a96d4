"""What was sent to a cluster after it was read: by this environment, or by another one that has the same cluster.

Lines of an audit log after those that the reading counted are later. A request without a line yet is in an open
journal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from topicops.edges.home.audit_files import audited_environments, last_line_number, read_audit_log
from topicops.edges.home.journal import unsettled
from topicops.edges.places import Place
from topicops.features.topic_pages.file import TopicIndex
from topicops.features.topic_pages.values import IndexHead
from topicops.flow.runs.run import audit_folder
from topicops.model.errors import ArtifactError
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.results import OutcomeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterRun:
    """A run that has sent changes after a reading began, of this environment or another one of the same cluster."""

    run: str
    """``<DAG>/<run id>``."""
    environment: str
    last_at: datetime | None = None
    """Time of its last answer, by the clock of the host that sent; None means that no answer is known."""
    outcomes: Mapping[str, OutcomeStatus] = field(default_factory=dict)
    """Newest outcome, by topic."""
    is_open: bool = False
    """Whether it still sends, or ended in the middle: then the outcome of some requests is unknown."""


def outcomes_of(later: Sequence[LaterRun]) -> Mapping[str, OutcomeStatus]:
    """Give the newest outcome of each topic that a later run may have changed."""
    in_order = sorted(later, key=lambda run: (run.is_open, run.last_at.timestamp() if run.last_at else 0.0))
    return {topic: status for run in in_order for topic, status in run.outcomes.items()}


def known_clusters(home: Place) -> Mapping[str, str | None]:
    """Give the id of the cluster of each environment that has sent something; None means that it may be any."""
    names = {*audited_environments(audit_folder(home)), *(path.name for path in (home / "unsettled").glob("*"))}
    return {name: _cluster_of(home, name) for name in sorted(names)}


def later_changes(home: Place, head: IndexHead, clusters: Mapping[str, str | None]) -> tuple[LaterRun, ...]:
    """Find each run that sent something to the cluster of this index after it was read, oldest first.

    Raises ``ArtifactError`` where an audit log or a journal cannot be read, so that nobody can say.
    """
    found: dict[str, LaterRun] = {}
    for environment, cluster_id in clusters.items():
        if environment != head.environment and cluster_id not in (head.live.cluster_id, None):
            continue
        for run in (*_answered(home, environment, head.audit_marks.get(environment, 0)), *_open(home, environment)):
            known = found.get(run.run)
            found[run.run] = _joined(known, run) if known else run
    return tuple(sorted(found.values(), key=lambda run: (run.is_open, str(run.last_at or ""))))


def _cluster_of(home: Place, environment: str) -> str | None:
    try:
        return TopicIndex.of(home, environment).head().live.cluster_id
    except ArtifactError:  # there is no index, or it is damaged
        return None


def _answered(home: Place, environment: str, mark: int) -> Iterator[LaterRun]:
    folder = audit_folder(home)
    if last_line_number(folder, environment) == mark:
        return
    log = read_audit_log(folder, environment, may_begin_with=lambda line: line.n <= mark + 1)
    by_run: Mapping[str, list[AuditLine]] = defaultdict(list)
    for line in log.lines:
        if line.n > mark:
            by_run[line.run].append(line)
    for name, lines in by_run.items():
        outcomes = {line.topic: line.outcome for line in lines}
        yield LaterRun(run=name, environment=environment, last_at=lines[-1].at, outcomes=outcomes)


def _open(home: Place, environment: str) -> Iterator[LaterRun]:
    for name, topics in unsettled(home / "unsettled" / environment):
        unknown = dict.fromkeys(topics, OutcomeStatus.UNKNOWN)
        yield LaterRun(run=name, environment=environment, outcomes=unknown, is_open=True)


def _joined(first: LaterRun, second: LaterRun) -> LaterRun:
    """Join what two sources have of the same run."""
    return replace(
        first,
        last_at=max(filter(None, (first.last_at, second.last_at)), default=None),
        outcomes={**first.outcomes, **second.outcomes},
        is_open=first.is_open or second.is_open,
    )
