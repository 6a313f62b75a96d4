"""Topics that files describe and that were deleted outside git: what a create says about such a topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from topicops.model.cluster.snapshot import LastSeen, PastDelete
from topicops.model.codes import Code
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.model.topics_in_files import hold

LOST_CODE = Code.LOST_TOPIC
DELETED_CODE = Code.COMES_BACK_EMPTY


def lost_topics(missing: Mapping[str, LastSeen], desired: Desired, *, deleted: Collection[str]) -> dict[str, LastSeen]:
    """Those of the missing topics that files still ask for and that topicops did not delete, by name.

    Args:
        missing: Topics of earlier snapshots that are not live.
        deleted: Identities of the topics that topicops has deleted.
    """
    described = sorted(missing.keys() & desired.topics.keys())
    hold(desired.topics, described)
    return {
        name: missing[name]
        for name in described
        if desired.topics[name].lifecycle is not Lifecycle.ABSENT and missing[name].identity not in deleted
    }


def deleted_note(past: PastDelete) -> str:
    """What a reviewer must know before the topic is created again, as after the revert of a tombstone."""
    return (
        f"the run {past.run} deleted a topic of this name on {past.at}: it comes back empty, without offsets of groups"
    )


def lost_note(seen: LastSeen) -> str:
    """What a reviewer must know before the topic is created again."""
    return (
        f"the topic lived at an earlier snapshot (id {seen.identity}, seen at {seen.at}), and was deleted outside git; "
        "its records are gone"
    )
