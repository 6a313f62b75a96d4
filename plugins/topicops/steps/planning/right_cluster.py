"""Check before every plan that this is the environment's cluster, and that it has not lost its topics."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import ShrunkenWorldError, UsageError, WrongTargetError
from topicops.model.printable import plural, printable
from topicops.model.release import Releases
from topicops.model.specs.environment import Environment


def require_cluster_id(found_id: str, environment: Environment) -> None:
    """Raise ``WrongTargetError`` with both ids; an environment without an id, a sandbox, accepts any cluster."""
    expected_id = environment.spec.cluster.id
    if expected_id is None or found_id == expected_id:
        return
    raise WrongTargetError(
        f"{environment.place_of('cluster.id')}: the environment names cluster {expected_id}, but the one that answered "
        f"is {printable(found_id)}; nothing was sent: correct the address, or the id if this is the right cluster"
    )


def require_known_draining(live: ClusterSnapshot, environment: Environment) -> None:
    """Raise ``UsageError`` for an id in ``cluster.draining`` that no live broker and no replica of a topic has."""
    unknown = {*environment.spec.cluster.draining} - live.brokers.keys()
    if unknown:
        rows = (row for topic in live.topics.values() for row in topic.assignment.values())
        unknown -= live.totals.replicas.keys() if live.totals else {broker for row in rows for broker in row}
    if unknown:
        place = environment.place_of("cluster.draining")
        raise UsageError(
            f"{place}: the cluster has no {brokers_text(unknown)} ({Code.NO_PLACEMENT}); live are "
            f"{brokers_text(live.brokers)}: correct the list"
        )


def require_not_shrunken(topics_now: int, topics_last: int | None, shrink_percent: int) -> None:
    """Raise ``ShrunkenWorldError`` when more than ``shrink_percent`` of the topics are gone.

    Args:
        topics_now: How many topics are live.
        topics_last: How many the last good snapshot had; None: there is none.
        shrink_percent: ``limits.shrinkPercent``, 0 to 100.
    """
    if topics_last is None:
        return
    gone = topics_last - topics_now
    if gone * 100 <= shrink_percent * topics_last:
        return
    raise ShrunkenWorldError(
        f"{plural(topics_now, 'topic')} {'is' if topics_now == 1 else 'are'} live, "
        f"{topics_last} were at the last good snapshot: "
        f"more than limits.shrinkPercent ({shrink_percent}) are gone, so nothing is planned; "
        "find out why; if it is intended, remove the cluster's file in $TOPICOPS_HOME/last-good"
    )


def release_warnings(environment: Environment, releases: Releases | None) -> Iterator[str]:
    """Yield a sentence if the environment names another release than the brokers run; none where that is not known."""
    written = environment.spec.cluster.release
    if releases is None or releases.oldest.may_be(written):
        return
    place = environment.place_of("cluster.kafkaVersion")
    yield (
        f"the brokers run Kafka {releases}, and the files were checked by the rules of {written} ({place}): "
        f'write kafkaVersion: "{releases.oldest}"'
    )
