"""The changes that apply can make to a topic, and what must still be true when it sends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal, assert_never

import msgspec

from topicops.model.cluster.broker_defaults import Default, DefaultOnBrokers
from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.json_types import sha256_of
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk

Action = Literal["create", "expand", "configure", "reassign", "delete"]
ACTIONS: tuple[Action, ...] = ("create", "expand", "configure", "reassign", "delete")
"""Actions in the order in which a plan lists them and apply sends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that a plan is for."""

    environment: str
    cluster_id: str
    chroot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must still be true right before the request; only what the change depends on."""

    absent: bool = False
    """Whether there is no topic znode and no deletion marker."""
    identity: str | None = None
    """Topic id, or ``czxid:<n>`` where the cluster has no topic ids."""
    partitions: int | None = None
    assignment_digest: str | None = None
    overrides: Mapping[str, str | None] | None = None
    """Canonical value of each override that the change touches; None means not set."""
    all_overrides: bool = False
    """``overrides`` are all that the topic has: the request replaces them all, as without ``SINGLE_OVERRIDES``."""

    def to_json(self) -> dict[str, object]:
        if self.absent:
            return {"absent": True}
        found: dict[str, object] = {
            "identity": self.identity,
            "partitions": self.partitions,
            "assignment_digest": self.assignment_digest,
            "overrides": dict(self.overrides) if self.overrides is not None else None,
        }
        known = {name: value for name, value in found.items() if value is not None}
        return {**known, "all_overrides": True} if self.all_overrides else known


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """What every change has. Not used by itself: see ``Change``."""

    action: ClassVar[Action]

    topic: str
    owner: str = ""
    """Owner in the spec; not part of the digest."""
    location: Location
    risk: Risk
    codes: tuple[Code, ...] = ()
    """The reasons for the risk: ``TOP4nn``, sorted."""
    reversible: bool
    precondition: Precondition
    notes: tuple[str, ...] = ()
    """Sentences for the reviewer; outside the digest."""

    @property
    def address(self) -> str:
        return f"topic.{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(PlannedChange):
    action: ClassVar[Action] = "create"

    partitions: int
    replication_factor: int
    assignment: Assignment
    """Rows of all partitions; empty: the brokers place the replicas, as in a managed cluster."""
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def new_partitions(self) -> int:
        return self.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandTopic(PlannedChange):
    action: ClassVar[Action] = "expand"

    partitions_before: int
    assignment_before: Assignment = field(default_factory=dict)
    """Live rows, with which apply names what moved since."""
    partitions: int
    """The total after the change, which is what Kafka's request carries."""
    assignment: Assignment
    """Rows of the new partitions only; empty: the brokers place the replicas."""

    @property
    def replication_factor(self) -> int:
        """Kafka gives new partitions as many replicas as partition 0 has."""
        return len(self.assignment_before.get(0, ()))

    @property
    def new_partitions(self) -> int:
        return self.partitions - self.partitions_before


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureTopic(PlannedChange):
    action: ClassVar[Action] = "configure"

    configs_before: Mapping[str, str | None]
    """Canonical values before, with the keys of ``configs``; None means no override."""
    configs: Mapping[str, str | None]
    """None removes the override."""
    broker_defaults: Mapping[str, str] = field(default_factory=dict)
    """Value of all brokers where ``configs_before`` or ``configs`` has none; no entry: they differ, or it is not known.

    In the plan's fingerprint, as ``differing_defaults``; not in the change's digest.
    """
    differing_defaults: Mapping[str, Default] = field(default_factory=dict)
    """Values by broker where brokers differ, or some gave none; no entry: all have one value, or none gave one."""

    def default(self, config: str) -> Default:
        """Return what brokers use for this config without an override, as a plan shows it; empty: not known."""
        if config in self.broker_defaults:
            return (DefaultOnBrokers(self.broker_defaults[config], ()),)
        return self.differing_defaults.get(config, ())

    @property
    def all_configs(self) -> Mapping[str, str]:
        """Every override that the topic has afterwards, where the precondition knows all of now."""
        overrides = {**(self.precondition.overrides or {}), **self.configs}
        return {name: value for name, value in overrides.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(PlannedChange):
    action: ClassVar[Action] = "delete"

    topic_id: str | None
    partitions: int
    reason: str
    """Reason in the tombstone."""


class MoveReason(StrEnum):
    """Why replicas of a topic move."""

    FACTOR = "factor"
    """The file asks for another replication factor."""
    ASSIGNMENT = "assignment"
    """The file gives the replicas by hand."""
    DRAIN = "drain"
    """A broker of ``cluster.draining`` holds replicas, or one that the command ``drain`` names."""
    RACKS = "racks"
    """Replicas of one partition share a rack, although there is another."""
    BALANCE = "balance"
    """The command ``rebalance`` asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignTopic(PlannedChange):
    """Moves replicas of some partitions. The rows are in its digest: here the place is the change."""

    action: ClassVar[Action] = "reassign"

    why: MoveReason
    assignment_before: Assignment
    """Rows of the partitions that differ, as they are: the origin of each move."""
    assignment: Assignment
    """Rows that these partitions get, preferred leader first: the target of each move."""
    copied_bytes: int | None = None
    """Bytes to copy, all new replicas together; in no digest. None means not known."""

    @property
    def added(self) -> Mapping[int, int]:
        """Return how many replicas each broker gets."""
        return Counter(b for p, row in self.assignment.items() for b in set(row) - set(self.assignment_before[p]))

    @property
    def removed(self) -> Mapping[int, int]:
        """Return how many replicas each broker loses."""
        return Counter(b for p, row in self.assignment_before.items() for b in set(row) - set(self.assignment[p]))

    @property
    def added_replicas(self) -> int:
        return sum(self.added.values())

    @property
    def is_order_only(self) -> bool:
        """Whether only preferred leaders change, so that no byte is copied."""
        return not self.added and not self.removed


Change = CreateTopic | ExpandTopic | ConfigureTopic | ReassignTopic | DeleteTopic


def lets_records_go(change: Change) -> bool:
    """Return whether it deletes the topic, or lets it keep records for less time or in fewer bytes."""
    return isinstance(change, DeleteTopic) or Code.RETENTION_DELETES in change.codes


class GateWord(StrEnum):
    RUN = "run"
    HELD = "held"
    """Needs an approval that names it."""
    SKIPPED = "skipped"
    """The change does not run now: it is over a limit, or the cluster's state does not allow it."""


def before_and_after(change: Change) -> tuple[dict[str, object] | None, dict[str, object] | None]:
    """Return the values before and after a change, as JSON; ``assignment`` maps partition ids to replica lists."""
    match change:
        case CreateTopic():
            return None, {
                "partitions": change.partitions,
                "replication_factor": change.replication_factor,
                "configs": dict(change.configs),
                "assignment": _assignment_json(change.assignment),
            }
        case ExpandTopic():
            before: dict[str, object] = {
                "partitions": change.partitions_before,
                "assignment": _assignment_json(change.assignment_before),
            }
            return before, {"partitions": change.partitions, "assignment": _assignment_json(change.assignment)}
        case ConfigureTopic():
            return {"configs": dict(change.configs_before)}, {"configs": dict(change.configs)}
        case ReassignTopic():
            rows: dict[str, object] = {"assignment": _assignment_json(change.assignment_before)}
            return rows, {"assignment": _assignment_json(change.assignment)}
        case DeleteTopic():
            return {"topic_id": change.topic_id, "partitions": change.partitions}, None
    assert_never(change)


def audited_request(change: Change) -> dict[str, object]:
    """Return what the audit log has of a change, as JSON: see ``AuditLine.request``."""
    found: dict[str, object] = dict(zip(("before", "after"), before_and_after(change), strict=True))
    if isinstance(change, DeleteTopic):
        return {**found, "reason": change.reason}
    if not isinstance(change, ConfigureTopic):
        return found
    defaults = {name: change.default(name) for name in sorted(change.configs)}
    shown = {name: msgspec.to_builtins(default) for name, default in defaults.items() if default}
    return {**found, "defaults": shown} if shown else found


def digest_of(change: Change, target: Target) -> str:
    """Hex SHA-256 that names this change to an approval: all that it does, except where new replicas are placed.

    Of a reassignment the rows count, too.
    """
    before, after = before_and_after(change)
    if not isinstance(change, ReassignTopic):
        before, after = _without_assignment(before), _without_assignment(after)
    return sha256_of(
        {
            "target": [target.environment, target.cluster_id, target.chroot],
            "address": change.address,
            "actions": [change.action],
            "before": before,
            "after": after,
            "precondition": change.precondition.to_json(),
        }
    )


def _without_assignment(values: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if values is None else {name: value for name, value in values.items() if name != "assignment"}


def _assignment_json(assignment: Assignment) -> dict[str, list[int]]:
    return {str(partition): list(assignment[partition]) for partition in sorted(assignment)}
