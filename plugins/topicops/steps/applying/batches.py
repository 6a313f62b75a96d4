"""The requests into which a plan is cut; what ``TopicAdmin`` gets in one call goes out as one request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.plans.changes import Change, CreateTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import EnvironmentSpec


def batches(gated_changes: Sequence[GatedChange], environment: EnvironmentSpec) -> Iterator[list[GatedChange]]:
    """Split into requests of one kind each, within the environment's topics and partitions a request.

    The order is kept. A change that is larger than the limit goes alone.
    """
    batch: list[GatedChange] = []
    for gated in gated_changes:
        if batch and not _fits(batch, gated, environment):
            yield batch
            batch = []
        batch.append(gated)
    if batch:
        yield batch


def _fits(batch: Sequence[GatedChange], gated: GatedChange, environment: EnvironmentSpec) -> bool:
    limits = environment.apply
    partitions = sum(_new_partitions(other.change) for other in (*batch, gated))
    same_kind = batch[0].change.action == gated.change.action
    return same_kind and len(batch) < limits.topics_per_request and partitions <= limits.partitions_per_request


def _new_partitions(change: Change) -> int:
    return len(change.assignment) if isinstance(change, CreateTopic | ExpandTopic) else 0
