"""What was sent to a cluster after it was read: by this environment, or by another one that has the same cluster.

Each reading notes first how many lines each audit log has. Lines with a higher number are later, whatever the clocks of
the hosts say. A request without a line yet is in an open journal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from topicops.edges.home.audit_files import audited_environments, last_line_number, read_audit_log
from topicops.edges.home.open_journals import unsettled
from topicops.edges.home.topic_index import TopicIndex, topic_index_path
from topicops.flow.runs.run import Run, audit_folder
from topicops.model.errors import ArtifactError
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.facts import FactsWhen
from topicops.model.runs.later_changes import AuditMarks, LaterRun
from topicops.model.runs.results import OutcomeStatus
from topicops.model.runs.topic_index import IndexHead


def note_reading(run: Run, when: FactsWhen) -> None:
    """Before the cluster is read: keep how many changes were sent so far."""
    run.store.write_value(_marks_file(when), audit_marks(run.home))


def reading_marks(run: Run, when: FactsWhen) -> AuditMarks:
    """As ``note_reading`` left them; empty if it left none: then each change counts as later."""
    return run.store.read_value(_marks_file(when), dict[str, int]) if run.store.has(_marks_file(when)) else {}


def audit_marks(home: Path) -> AuditMarks:
    """By environment: the number of the last line of its audit log."""
    folder = audit_folder(home)
    return {name: last_line_number(folder, name) for name in audited_environments(folder)}


def known_clusters(home: Path) -> Mapping[str, str | None]:
    """By environment that has sent something: the id of its cluster; None: not known, so it may be any."""
    names = {*audited_environments(audit_folder(home)), *_names_in(home / "unsettled")}
    return {name: _cluster_of(home, name) for name in sorted(names)}


def later_changes(
    home: Path, head: IndexHead, clusters: Mapping[str, str | None] | None = None
) -> tuple[LaterRun, ...]:
    """Each run that sent something to the cluster of this index after it was read, oldest first.

    Args:
        clusters: As ``known_clusters`` gives them, for whoever asks about many environments.

    Raises:
        ArtifactError: An audit log or a journal cannot be read, so nobody can say.
    """
    found: dict[str, LaterRun] = {}
    for environment, cluster_id in (known_clusters(home) if clusters is None else clusters).items():
        if environment != head.environment and cluster_id not in (head.live.cluster_id, None):
            continue
        for run in (*_answered(home, environment, head.audit_marks.get(environment, 0)), *_open(home, environment)):
            known = found.get(run.run)
            found[run.run] = _joined(known, run) if known else run
    return tuple(sorted(found.values(), key=lambda run: (run.is_open, str(run.last_at or ""))))


def _cluster_of(home: Path, environment: str) -> str | None:
    try:
        return TopicIndex(topic_index_path(home, environment)).head().live.cluster_id
    except ArtifactError:  # there is no index, or it is damaged
        return None


def _names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _answered(home: Path, environment: str, mark: int) -> Iterator[LaterRun]:
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


def _open(home: Path, environment: str) -> Iterator[LaterRun]:
    for name, topics in unsettled(home / "unsettled" / environment):
        unknown = dict.fromkeys(topics, OutcomeStatus.UNKNOWN)
        yield LaterRun(run=name, environment=environment, outcomes=unknown, is_open=True)


def _joined(first: LaterRun, second: LaterRun) -> LaterRun:
    """What two sources have of the same run."""
    return LaterRun(
        run=first.run,
        environment=first.environment,
        last_at=max(filter(None, (first.last_at, second.last_at)), default=None),
        outcomes={**first.outcomes, **second.outcomes},
        is_open=first.is_open or second.is_open,
    )


def _marks_file(when: FactsWhen) -> str:
    return f"audit-lines-{when}.json"
