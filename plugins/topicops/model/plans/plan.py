"""The plan: people review it, the gate sorts it, and apply sends only what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

import msgspec

from topicops.model.cluster.broker_defaults import default_text
from topicops.model.codes import Code
from topicops.model.json_types import sha256_of
from topicops.model.plans.changes import (
    ACTIONS,
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    ReassignTopic,
    Target,
)
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import ApprovalWay, Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Partitions that are well while the rack is there."""

    offline: int
    """Partitions without a leader after the loss."""
    below_min_isr: int
    """Partitions whose leader then refuses records with ``acks=all``."""
    moved_leaders: int
    """Led by another broker then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLossRow:
    """All live brokers of one rack, lost at once."""

    rack: str
    brokers: int
    before: Loss
    after: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLossTable:
    """Empty of racks where the loss of one leaves no broker: none is named, or all brokers are on the same."""

    racks: tuple[RackLossRow, ...] = ()
    """Rows by name of the rack."""
    only_rack: str | None = None
    """The rack of all brokers."""
    brokers_without_rack: tuple[int, ...] = ()
    """They stay, whichever rack is lost."""
    knows_broker_defaults: bool = True
    """Whether the brokers' defaults are known; else topics without ``min.insync.replicas`` are taken to have 1,
    Kafka's.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a broker or a rack holds of the cluster."""

    replicas: int
    leaders: int
    """First replicas: the preferred leaders, wherever the leader is right now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """One live broker."""

    broker: int
    rack: str | None
    before: Share
    after: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLoad:
    """All live brokers of one rack."""

    rack: str
    brokers: int
    before: Share
    after: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTable:
    """Empty when a plan places nothing."""

    brokers: tuple[BrokerLoad, ...] = ()
    """Loads by broker id."""
    racks: tuple[RackLoad, ...] = ()
    """Loads by name of the rack; brokers without a rack are in none."""
    free_bytes: Mapping[int, int] = field(default_factory=dict)
    """Free bytes of each broker that gets copies, once it has them; brokers that do not tell are missing."""


KEY_DIGITS = 8
"""How many digits of a plan's fingerprint approve it at least."""
FORMAT_VERSION = "1.0"
"""An older reader must refuse another major version; of another minor version it may ignore unknown fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A topic whose difference no change can remove now; other topics are not affected."""

    topic: str
    owner: str = ""
    codes: tuple[Code, ...]
    """Codes of all reasons, sorted."""
    reasons: tuple[str, ...]
    """One sentence for each code, in the same order."""
    way_out: str
    """Next step for a person."""
    location: Location
    reassignment: str | None = None
    """JSON for Kafka's own reassignment tool, where that is the way out."""
    wanted: tuple[str, ...] = ()
    """Values of the spec: ``partitions 4 -> 8``; since 1.5."""
    spec: Location | None = None
    """Place of the topic's own file, even if the blocked value comes from another one; since 1.5."""

    @property
    def address(self) -> str:
        return f"topic.{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A live override that no spec names: reported, not changed."""

    topic: str
    owner: str = ""
    config: str
    value: str
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    topic: str
    owner: str = ""
    reason: str
    until: str
    """RFC 3339 UTC."""
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """What the plan was made from."""

    commit: str | None
    desired_digest: str
    topics: int
    """Number of topics that the specs of this environment describe."""
    only: str | None = None
    """The glob of ``--only``; empty: of the topics of its changes alone; None means of all topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The state of the cluster at the time of the plan, as far as the gate needs it."""

    live_brokers: int
    has_controller: bool
    offline_partitions: int | None
    """Number of partitions without a leader; None means that states were not read."""
    live_topics: int
    managed_topics: int
    """Live topics that a spec of this environment names."""
    planned_deletes: int = 0
    """Number of deletes in the whole plan, also with ``--only``."""


NO_RECORD = -1
"""Kafka's answer for the time of the newest record, if a partition has none."""


class GroupUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a group uses a topic."""

    state: str
    """State in Kafka's words, such as ``Stable`` or ``Empty``; empty text means not known."""
    lag: int | None
    """Records behind its commits, summed over the partitions that it committed; None means that it committed none.

    For a share group, records behind its start offsets.
    """
    type: str = ""
    """Type as Kafka names it, such as ``share``; empty text: a classic group."""
    unread: str = ""
    """Reason why the group could not be read, so that it counts as use of every topic; empty text: it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicActivity:
    """Traffic on a topic that will be deleted; in the plan's fingerprint, in no change's digest."""

    end_offsets: Mapping[int, int] | None
    """End offsets by partition; None means that they could not be read."""
    groups: tuple[str, ...] | None
    """Groups with members or commits, and those that could not be read; None means that no list of them was read."""
    last_record_ms: int | None = None
    """Newest timestamp of any record, in ms since 1970; ``NO_RECORD``: brokers give none; None means not known."""
    group_uses: Mapping[str, GroupUse] = field(default_factory=dict)
    """Uses by group."""
    emptied: tuple[int, ...] = ()
    """Partitions that had records and now have no time of one: ``last_record_ms`` does not count their last one."""
    kept_ms: int | None = None
    """How old each record was at least when retention took it, by the brokers' configs of now.

    None: not known, or they may hold records still: without a time, or in remote storage.
    Read only where ``emptied`` names partitions.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityOfHiddenGroups(TopicActivity):
    """Activity from brokers that do not say whether the reader sees every group; so ``groups`` is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The plan step's result, before the gate: ``changes.json``."""

    target: Target
    source: PlanSource
    cluster: ClusterState
    changes: tuple[Change, ...]
    """Ordered as ``ACTIONS``; by topic name in each."""
    blocked: tuple[Blocked, ...] = ()
    drift: tuple[Drift, ...] = ()
    unmanaged: tuple[str, ...] = ()
    paused: tuple[Paused, ...] = ()
    activity: Mapping[str, TopicActivity] = field(default_factory=dict)
    load: LoadTable = field(default_factory=LoadTable)
    """Load as if every change ran, whatever the gate decides; in no digest."""
    rack_losses: RackLossTable | None = None
    """Losses as if every change ran; in no digest. None: no change, states not read, or too many partitions."""
    log_bytes: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    """Bytes on disk of topics that go, or keep less, by broker; None means not known. In no digest."""
    throttle: int | None = None
    """Bytes a second and broker that moves may copy, as ``apply.throttle``; None means no limit. In no digest."""
    move_obstacles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why the moves of a topic cannot begin now, by topic; in no digest."""
    warnings: tuple[str, ...] = ()
    """Sentences about what could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedChange:
    """A change, the digest that names it to an approval, and the gate's decision."""

    change: Change
    digest: str
    gate: GateWord
    reasons: tuple[str, ...] = ()
    """Reasons why it is held or skipped, with both numbers and the place of the limit; empty when it runs."""
    approvable: bool = False
    """Whether it is held, and an approval that names it lets it run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change set that went through the gate: ``plan.json``."""

    change_set: ChangeSet
    changes: tuple[GatedChange, ...]
    command_approves: Risk | None = Risk.DESTRUCTIVE
    """The highest risk that ``--approve`` lets run, by the policy; None means that it lets none. In no digest."""

    @property
    def target(self) -> Target:
        return self.change_set.target

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that an approval of the whole plan is about; the order of the inputs does not matter.

        Beside the digests of the changes: where replicas go, the brokers' defaults behind a config that has no
        override, the traffic on topics that go, and the commit of the files.
        """
        target, change_set = self.target, self.change_set
        return sha256_of(
            {
                "target": [target.environment, target.cluster_id, target.chroot],
                "commit": change_set.source.commit,
                "changes": sorted([gated.digest, sha256_of(_beside_digest(gated.change))] for gated in self.changes),
                "activity": {topic: _shown(activity) for topic, activity in change_set.activity.items()},
            }
        )

    @property
    def key(self) -> str:
        """The digits of the fingerprint that a person types."""
        return self.fingerprint[:KEY_DIGITS]

    def key_problem(self, typed: str) -> str:
        """Return why these digits do not approve this plan; empty: they do."""
        if not self.fingerprint.startswith(typed):
            return f"{typed!r} is not how this plan's fingerprint {self.key}... begins; review it first"
        return "" if len(typed) >= KEY_DIGITS else f"{typed!r} is too short: type {KEY_DIGITS} digits or more"

    def with_gate(self, word: GateWord) -> tuple[GatedChange, ...]:
        return tuple(gated for gated in self.changes if gated.gate is word)

    def held_for(self, *, command: bool) -> tuple[GatedChange, ...]:
        """Return the held changes that an approval lets run: for a command those of ``--approve``, else the others."""
        limit = self.command_approves
        return tuple(
            gated
            for gated in self.changes
            if gated.approvable and command is (limit is not None and gated.change.risk.rank <= limit.rank)
        )

    @property
    def is_empty(self) -> bool:
        """Nothing to change and nothing blocked."""
        return not self.changes and not self.change_set.blocked

    @property
    def action_counts(self) -> dict[Action, int]:
        return {action: sum(gated.change.action == action for gated in self.changes) for action in ACTIONS}


def _shown(activity: TopicActivity) -> Mapping[str, object]:
    """Leave out the fields of 1.7 that say nothing: older plans keep their fingerprints."""
    fields = msgspec.to_builtins(activity, str_keys=True)
    return {name: value for name, value in fields.items() if value or name not in ("emptied", "kept_ms")}


def _beside_digest(change: Change) -> Mapping[str, object]:
    """Return what a plan shows of a change and its digest leaves out."""
    match change:
        case CreateTopic() | ExpandTopic():
            return {"assignment": {str(p): list(row) for p, row in change.assignment.items()}}
        case ConfigureTopic():
            differing = {name: default_text(rows) for name, rows in change.differing_defaults.items()}
            return {"broker_defaults": dict(change.broker_defaults), **({"differing": differing} if differing else {})}
        case ReassignTopic():
            return {"why": change.why}
        case DeleteTopic():
            return {}
    assert_never(change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One person's word on exactly these changes. Whether it counts, the environment's policy says."""

    digests: frozenset[str]
    way: ApprovalWay
    approver: str | None
    """Airflow's user name, the account that runs the command, or the reviewer's login; None means not known."""
    signature: str
    """The approver as the audit log names him: ``admin (id 1)``, ``carol (by parameter)``, or a review."""
    given_at: datetime
    authors: frozenset[str] = frozenset()
    """Users who started the runs that found these changes or asked about them, or who wrote the pull request."""
    comment: str = ""
    """Comment of the approver."""


def may_run(gated: GatedChange, approvals: Sequence[Approval]) -> bool:
    """Return whether the gate may let the change run: only an approval can soften the gate's first word."""
    is_named = any(gated.digest in approval.digests for approval in approvals)
    return gated.gate is GateWord.RUN or (gated.approvable and is_named)
