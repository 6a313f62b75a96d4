"""Checks before anything is sent: the right cluster, whole, with files, one home; and which topics are lost."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from topicops.edges.home.audit_files import audited_environments, logged_topics, past_deletes
from topicops.edges.home.memories import SeenTopics, mark_of, read_mark, topic_count
from topicops.edges.places import Place
from topicops.flow.runs.run import audit_folder
from topicops.model.cluster.snapshot import ClusterSnapshot, LastSeen, PastDelete
from topicops.model.errors import UsageError, WrongTargetError
from topicops.model.json_types import JsonError, json_errors
from topicops.model.plans.plan import Approval, GatedChange, Plan
from topicops.model.ports import Clock, ServerTime
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.steps.clocks import difference_text, reached_by_either
from topicops.steps.planning.approvals import Counted, counted
from topicops.steps.planning.diff import lost_topics
from topicops.steps.planning.right_cluster import require_not_shrunken

if TYPE_CHECKING:
    from topicops.edges.tables.table_folder import TableFolder


def require_planned_target(plan: Plan, cluster_id: str, chroot: str) -> None:
    """Raise ``WrongTargetError`` unless the cluster that answered is the one that the plan was made for."""
    planned = (plan.target.cluster_id, plan.target.chroot)
    if planned != (cluster_id, chroot):
        raise WrongTargetError(
            f"the plan is for cluster {planned[0]} below {planned[1] or '/'}, and {cluster_id} below "
            f"{chroot or '/'} answered; nothing was sent: correct the environment's address, or plan again"
        )


def require_whole(home: Place, environment: Environment, live: ClusterSnapshot) -> int | None:
    """Give the topics at the last good snapshot. Raises ``ShrunkenWorldError`` when too many are gone since then."""
    topics_before = topic_count(home, live.cluster_id)
    require_not_shrunken(len(live.topics), topics_before, environment.spec.limits.shrink_percent)
    return topics_before


def require_same_cluster(by_brokers: str, live: ClusterSnapshot) -> None:
    """Raise ``WrongTargetError`` when the applier's brokers belong to another cluster than the one that was read."""
    if by_brokers != live.cluster_id:
        read = "ZooKeeper" if live.source == "zookeeper" else "the brokers that were read"
        raise WrongTargetError(
            f"the bootstrap servers belong to cluster {by_brokers}, {read} to {live.cluster_id}; nothing was sent: "
            "correct one of the two addresses"
        )


def require_files(topics: Path, environment: Environment, desired: Desired) -> None:
    """Raise ``UsageError`` where no topic file can ask for the plan's changes, unless the policy allows it."""
    if desired.has_files or environment.spec.policy.plans_without_files == "allow":
        return
    raise UsageError(
        f"{topics} has no topic of environment {environment.name}, so nothing asks for the plan's changes; nothing "
        "was sent: apply it where the files are, or set policy.plansWithoutFiles: allow "
        f"({environment.place_of('policy.plansWithoutFiles')})"
    )


def counted_signatures(
    environment: Environment,
    approvals: Sequence[Approval],
    changes: Sequence[GatedChange],
    clock: Clock,
    server_time: ServerTime | None = None,
) -> Counted:
    """Return who approved each change that may run by the policy of now. An approval's time may be of either clock."""
    now, clocks = reached_by_either(server_time, clock), difference_text(server_time, clock)
    return counted(approvals, changes, environment, now=now, clocks=clocks)


HOME_PAGE = "docs/how-to/run-in-airflow.md#several-workers"


class HomePlace(msgspec.Struct, frozen=True):
    """Where a run began."""

    host: str
    folder: str
    """The path of the home on that host."""
    token: str
    """Token of the home; no other folder has it."""


def place_of(home: Place) -> HomePlace:
    """Return the home on this host, which gets its token here if it has none. Raises ``ArtifactError``."""
    return HomePlace(host=socket.gethostname(), folder=str(home), token=mark_of(home))


def require_same_home(home: Place, began: object) -> None:
    """Raise ``UsageError`` when the run began in another folder.

    Args:
        began: As JSON, the ``HomePlace`` in which it began; None or something else: not known, and nothing is raised.
    """
    try:
        with json_errors():
            first = msgspec.convert(began, HomePlace)
    except JsonError:
        return
    here = socket.gethostname()
    if read_mark(home) != first.token:
        raise UsageError(
            f"this run's folder is on host {first.host}, below {first.folder}; {home} on host {here} is "
            "another TOPICOPS_HOME, or was emptied since: it must be one folder that all workers share, see "
            f"{HOME_PAGE}"
        )


def remember_topics(
    home: Place,
    environment: str,
    live: ClusterSnapshot,
    tables: TableFolder | None,
    desired: Desired | None,
    *,
    at: datetime,
) -> Mapping[str, LastSeen]:
    """Return the lost topics; they and all live ones are remembered for later runs. Raises ``ArtifactError``.

    A run without desired topics, as one that applies or verifies, does not know which are lost, and forgets none;
    nor does a run forget a topic whose file it has left out because of errors.

    Args:
        tables: Where the topics of the snapshot are, if they are not in it.
        at: When the snapshot was read.
    """
    seen = SeenTopics(home, environment, live.cluster_id)
    missing = seen.missing(live.topics)
    lost = {} if desired is None else _lost(home, missing, desired)
    unknown = missing.keys() if desired is None else missing.keys() & desired.left_out
    missed = {**lost, **{name: missing[name] for name in sorted(unknown)}}
    seen.write(_identities(live, tables), at=f"{at:%Y-%m-%dT%H:%M:%SZ}", missed=missed)
    return lost


def known_lost_topics(home: Place, environment: str, live: ClusterSnapshot, desired: Desired) -> Mapping[str, LastSeen]:
    """Return the lost topics as the last snapshot found them; nothing new is remembered. Raises ``ArtifactError``."""
    return _lost(home, SeenTopics(home, environment, live.cluster_id).missing(live.topics), desired)


def known_past_deletes(home: Place, environment: str, topics: Collection[str]) -> Mapping[str, PastDelete]:
    """Return which of these topics a run here has deleted: they come back empty. Raises ``ArtifactError``."""
    return past_deletes(audit_folder(home), environment, topics)


def _lost(home: Place, missing: Mapping[str, LastSeen], desired: Desired) -> Mapping[str, LastSeen]:
    folder, identities = audit_folder(home), {seen.identity for seen in missing.values()}
    logs = audited_environments(folder) if missing else ()
    deleted = {found for name in logs for found in logged_topics(folder, name, identities, "delete")}
    return lost_topics(missing, desired, deleted=deleted)


def _identities(live: ClusterSnapshot, tables: TableFolder | None) -> Iterable[tuple[str, str]]:
    if live.totals is None or tables is None:
        return ((name, topic.identity) for name, topic in live.topics.items())
    from topicops.edges.tables.topics import read_identities

    return read_identities(tables)
