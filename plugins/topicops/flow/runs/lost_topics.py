"""Which described topics were deleted outside git, from what earlier snapshots had and from the audit logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from topicops.edges.home.audit_files import audited_environments, deleted_topics, past_deletes
from topicops.edges.home.seen_topics import SeenTopics
from topicops.flow.runs.run import Run, audit_folder
from topicops.model.cluster.snapshot import ClusterSnapshot, LastSeen, PastDelete
from topicops.model.specs.desired import Desired
from topicops.steps.planning.lost_topics import lost_topics


def remember_topics(
    run: Run, live: ClusterSnapshot, desired: Desired | None, *, at: datetime
) -> Mapping[str, LastSeen]:
    """The lost topics; they and all live ones are remembered for later runs. Raises ``ArtifactError``.

    A run without desired topics, as one that applies or verifies, does not know which are lost, and forgets none;
    nor does a run forget a topic whose file it has left out because of errors.

    Args:
        at: When the snapshot was read.
    """
    seen = SeenTopics(run.home, run.environment, live.cluster_id)
    missing = seen.missing(live.topics)
    lost = {} if desired is None else _lost(run, missing, desired)
    unknown = missing.keys() if desired is None else missing.keys() & desired.left_out
    missed = {**lost, **{name: missing[name] for name in sorted(unknown)}}
    seen.write(_identities(run, live), at=f"{at:%Y-%m-%dT%H:%M:%SZ}", missed=missed)
    return lost


def known_lost_topics(run: Run, live: ClusterSnapshot, desired: Desired) -> Mapping[str, LastSeen]:
    """The lost topics as the last snapshot found them; nothing new is remembered. Raises ``ArtifactError``."""
    return _lost(run, SeenTopics(run.home, run.environment, live.cluster_id).missing(live.topics), desired)


def known_past_deletes(run: Run, topics: Collection[str]) -> Mapping[str, PastDelete]:
    """Which of these topics a run of this environment has deleted: they come back empty. Raises ``ArtifactError``."""
    return past_deletes(audit_folder(run.home), run.environment, topics)


def _lost(run: Run, missing: Mapping[str, LastSeen], desired: Desired) -> Mapping[str, LastSeen]:
    folder, identities = audit_folder(run.home), {seen.identity for seen in missing.values()}
    logs = audited_environments(folder) if missing else ()
    deleted = {found for name in logs for found in deleted_topics(folder, name, identities)}
    return lost_topics(missing, desired, deleted=deleted)


def _identities(run: Run, live: ClusterSnapshot) -> Iterable[tuple[str, str]]:
    if live.totals is None or (tables := run.tables()) is None:
        return ((name, topic.identity) for name, topic in live.topics.items())
    from topicops.edges.tables.live_topics import read_identities

    return read_identities(tables)
