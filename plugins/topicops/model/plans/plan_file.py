"""The plan as a file: ``changes.json`` before the gate, ``plan.json`` after it.

docs/reference/artifacts.md lists the fields. The files hold no time, no host and no absolute path, so equal plans are
equal bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeVar, assert_never, cast

import msgspec

from topicops.model.cluster.broker_defaults import DefaultOnBrokers
from topicops.model.codes import Code
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.json_types import FormatVersion, JsonError, json_errors, known, sha256_of
from topicops.model.plans.changes import (
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    MoveReason,
    Precondition,
    ReassignTopic,
    Target,
    before_and_after,
    digest_of,
)
from topicops.model.plans.plan import (
    FORMAT_VERSION,
    Blocked,
    ChangeSet,
    ClusterState,
    Drift,
    GatedChange,
    LoadTable,
    Paused,
    Plan,
    PlanSource,
    RackLossTable,
    TopicActivity,
)
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk

Json = Mapping[str, object]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class TopicValues(msgspec.Struct, kw_only=True):
    """A topic before or after a change; the action decides which fields are given."""

    partitions: int = 0
    replication_factor: int = 0
    topic_id: str | None = None
    configs: dict[str, str | None] = {}
    assignment: dict[int, tuple[int, ...]] = {}


class ChangeEntry(msgspec.Struct, kw_only=True):
    address: str
    """Name of the change's topic as an address: ``topic.payments.orders``."""
    topic: str
    """Name of the topic."""
    owner: str = ""
    """Owner as the file has it; not an account."""
    actions: tuple[Action]
    """List of one: ``create``, ``expand``, ``configure``, ``reassign`` or ``delete``."""
    before: TopicValues | None
    """Live values that change, by the action."""
    after: TopicValues | None
    """Values after the change, by the action."""
    reason: str = ""
    """Reason in the tombstone, of a delete."""
    why: MoveReason | None = None
    """Reason of a reassignment: ``factor``, ``assignment``, ``drain``, ``racks`` or ``balance``."""
    copied_bytes: int | None = None
    """Bytes that a reassignment copies, all new replicas together; null: not known."""
    location: Location
    """Place in the files that asks for the change: ``file``, ``line``, ``column``."""
    risk: Risk
    """Risk, from low to high: ``safe``, ``notice``, ``risky``, ``destructive``."""
    codes: tuple[Code, ...]
    """Codes of why the risk is what it is."""
    reversible: bool
    """Whether a later change can undo it."""
    digest: Sha256
    """SHA-256 that names the change to an approval."""
    notes: tuple[str, ...]
    """Sentences for the reviewer, for example that a delete and a create are no rename; in no digest."""
    broker_defaults: dict[str, str] = {}
    """Value of all brokers for each config with null before or after; missing if they differ, or no broker gave it.
   ."""
    differing_defaults: dict[str, tuple[DefaultOnBrokers, ...]] = {}
    """The same where brokers differ, or some gave none: lists of ``value`` (null: not given) and ``brokers``."""
    precondition: Precondition
    """What must still be true when the request is sent."""


class GatedEntry(ChangeEntry, kw_only=True):
    gate: GateWord
    """Word of the gate: ``run``, ``held`` or ``skipped``."""
    reasons: tuple[str, ...]
    """Reasons why it is held or skipped, with both numbers and the place of the limit."""
    approvable: bool = msgspec.field(name="in_question")
    """Whether it is held, and an approval that names it lets it run."""


class AnyPlanFile(msgspec.Struct, kw_only=True):
    """The fields of both files."""

    format_version: FormatVersion
    """Version of the format; another major version is refused (TOP511), and what a minor one adds is ignored."""
    source: PlanSource
    """What the plan was made from: ``commit`` (null unless the files are exactly those of a git commit),
    ``desired_digest``, ``topics`` and ``only``, the glob of ``--only``, if there was one."""
    target: Target
    """Cluster of the plan: ``environment``, ``cluster_id``, ``chroot``."""
    facts: ClusterState
    """What the gate knew of the cluster: ``live_brokers``, ``has_controller``, ``offline_partitions`` (null: not read),
    ``live_topics``, ``managed_topics``, ``planned_deletes`` (of the whole plan, with ``--only`` too)."""
    blocked: tuple[Blocked, ...]
    """Topics whose difference no change can remove now: ``address``, ``topic``, ``owner``, ``codes``, ``reasons`` (one
    for each code), ``way_out``, ``location``, ``reassignment`` (JSON for Kafka's tool, or null), ``wanted`` (what the
    topic's file asks for, such as ``partitions 4 -> 8``), ``spec`` (the topic's own file and line)."""
    drift: tuple[Drift, ...]
    """Live overrides that no file names, left alone: ``topic``, ``owner``, ``config``, ``value``, ``location``."""
    unmanaged: tuple[str, ...]
    """Names of live topics that no file names."""
    paused: tuple[Paused, ...]
    """Topics that are left alone until a time: ``topic``, ``owner``, ``reason``, ``until``, ``location``."""
    activity: dict[str, TopicActivity]
    """Traffic by topic to delete: ``end_offsets`` by partition, ``last_record_ms`` (newest timestamp, ms since 1970;
    -1: no record is left) and ``groups``, each null if it could not be read; ``group_uses`` by group: ``state``,
    ``lag``, ``type`` if it is no classic group (such as ``share``), and ``unread``, why it could not be read, so that
    it counts as a user of every topic; ``emptied``: partitions that had records and hold none, and ``kept_ms``: how old
    records were at least when retention took them, null if not known. In the fingerprint, in no
    digest."""
    load: LoadTable = LoadTable()
    """``brokers`` and ``racks``, each with ``before`` and ``after``: the number of ``replicas`` and ``leaders`` (first
    replicas) without the plan and with all of it; empty lists when nothing is created or expanded. In no digest."""
    rack_losses: RackLossTable | None = None
    """What the loss of any one rack would cost. ``racks``: each with ``rack``, ``brokers`` (how many), ``before`` and
    ``after``: the number of partitions that would be ``offline`` or ``below_min_isr`` and are not now, and
    ``moved_leaders``. ``only_rack``: the rack of all brokers, or null. ``brokers_without_rack``: they count as live.
    ``knows_broker_defaults``: false if ``min.insync.replicas`` of a broker is not known; then the largest of the others
    is used, else 1. Missing where nothing changes, the partition states were not read, or the cluster has more than a
    million partitions. In no digest."""
    log_bytes: dict[str, dict[int, int | None]] = {}
    """Bytes on disk, by broker, of each topic that is to be deleted or gets a shorter retention; null: not known.
    In no digest."""
    throttle: int | None = None
    """Bytes a second and broker that reassignments may copy, as `apply.throttle`; null or missing: no limit. In no
    digest."""
    move_obstacles: dict[str, tuple[str, ...]] = {}
    """Reasons why the moves of a topic cannot begin now, by topic: the gate skips them. In no digest."""
    warnings: tuple[str, ...]
    """Sentences about what the brokers could not be asked; with ``--only`` also how much is left out."""
    checksum: Sha256
    """SHA-256 over the canonical JSON of all the rest; a file that does not match is refused (TOP509). It guards
    against accidents, not against people: who edits the file can make it right again, so apply judges each change
    anew."""


class ChangesFile(AnyPlanFile, kw_only=True):
    changes: tuple[ChangeEntry, ...]


class PlanFile(AnyPlanFile, kw_only=True):
    """``plan.json``; its JSON Schema is made from this class."""

    fingerprint: Sha256
    """SHA-256 over all that an approval of the whole plan is about: target, commit, digests, new replicas, the brokers'
    defaults behind overrides, activity. ``apply --approve`` takes it."""
    applyable: bool
    """Whether any change runs, or can run with an approval."""
    complete: bool
    """``true``; apply refuses anything else."""
    errored: bool
    """``false``; apply refuses anything else."""
    changes: tuple[GatedEntry, ...]
    """Changes in the order of apply: create, expand, configure, reassign, delete; sorted by topic in each."""
    command_approves: Risk | None = Risk.DESTRUCTIVE
    """Highest risk that ``--approve`` lets run by the policy; null: it counts for nothing."""
    summary: dict[str, int]
    """Counts of each action, each word of the gate, blocked, drift, unmanaged, paused."""


SomeFile = TypeVar("SomeFile", bound=AnyPlanFile)


def changes_to_json(change_set: ChangeSet) -> str:
    """Return the text of ``changes.json``."""
    entries = [_change_json(change, digest_of(change, change_set.target)) for change in change_set.changes]
    return _encoded({"format_version": FORMAT_VERSION, **_document_json(change_set, entries)})


def changes_from_json(text: str) -> ChangeSet:
    """Read ``changes.json``.

    Raises:
        ArtifactError: The file is damaged: its checksum, or a change's digest, does not match.
        FormatVersionError: Another major version wrote it.
    """
    document, raw = _decoded(text, ChangesFile)
    return change_set_of(document, list(_changes(document, raw)))


def plan_to_json(plan: Plan) -> str:
    """Return the text of ``plan.json``."""
    entries = [_gated_json(gated) for gated in plan.changes]
    head: Json = {
        "format_version": FORMAT_VERSION,
        "fingerprint": plan.fingerprint,
        "applyable": any(gated.gate is GateWord.RUN or gated.approvable for gated in plan.changes),
        "complete": True,
        "errored": False,
    }
    approves: Json = {"command_approves": plan.command_approves.value if plan.command_approves else None}
    return _encoded({**head, **_document_json(plan.change_set, entries), **approves, "summary": _summary(plan)})


def plan_from_json(text: str) -> Plan:
    """Read ``plan.json``.

    Raises:
        ArtifactError: The file is damaged: its checksum, its fingerprint or a change's digest does not match.
        FormatVersionError: Another major version wrote it.
    """
    document, raw = _decoded(text, PlanFile)
    if document.errored or not document.complete:
        raise ArtifactError("the plan is not complete; plan again")
    changes = list(_changes(document, raw))
    gated = tuple(
        GatedChange(change=change, digest=e.digest, gate=e.gate, reasons=e.reasons, approvable=e.approvable)
        for change, e in zip(changes, document.changes, strict=True)
    )
    change_set = change_set_of(document, changes)
    plan = Plan(change_set=change_set, changes=gated, command_approves=document.command_approves)
    found = Counter((gated.change.action, gated.change.topic) for gated in plan.changes)
    if twice := [f"{action} {topic}" for (action, topic), times in found.items() if times > 1]:
        raise ArtifactError(f"the plan has a change twice, {twice[0]}; plan again")
    if plan.fingerprint != document.fingerprint:
        raise ArtifactError("the plan's fingerprint does not match its changes; plan again")
    return plan


def _document_json(change_set: ChangeSet, entries: Sequence[Json]) -> Json:
    return {
        "source": {name: value for name, value in _plain(change_set.source).items() if (name, value) != ("only", None)},
        "target": _plain(change_set.target),
        "facts": _plain(change_set.cluster),
        "changes": entries,
        "blocked": [{"address": blocked.address, **_plain(blocked)} for blocked in change_set.blocked],
        "drift": [_plain(drift) for drift in change_set.drift],
        "unmanaged": list(change_set.unmanaged),
        "paused": [_plain(paused) for paused in change_set.paused],
        "activity": {topic: _plain(change_set.activity[topic]) for topic in sorted(change_set.activity)},
        "load": {name: value for name, value in _plain(change_set.load).items() if value or name != "free_bytes"},
        **({"rack_losses": _plain(change_set.rack_losses)} if change_set.rack_losses else {}),
        **({"log_bytes": _plain(change_set.log_bytes)} if change_set.log_bytes else {}),
        **({"throttle": change_set.throttle} if change_set.throttle else {}),
        **({"move_obstacles": _plain(change_set.move_obstacles)} if change_set.move_obstacles else {}),
        "warnings": list(change_set.warnings),
    }


def _plain(value: object) -> dict[str, object]:
    return msgspec.convert(msgspec.to_builtins(value, str_keys=True), type=dict[str, object])


def _gated_json(gated: GatedChange) -> Json:
    verdict = {"gate": gated.gate.value, "reasons": list(gated.reasons), "in_question": gated.approvable}
    return {**_change_json(gated.change, gated.digest), **verdict}


def _change_json(change: Change, digest: str) -> Json:
    before, after = before_and_after(change)
    return {
        "address": change.address,
        "topic": change.topic,
        "owner": change.owner,
        "actions": [change.action],
        "before": before,
        "after": after,
        **_extra_fields(change),
        "location": _plain(change.location),
        "risk": change.risk.value,
        "codes": list(change.codes),
        "reversible": change.reversible,
        "digest": digest,
        "notes": list(change.notes),
        "precondition": change.precondition.to_json(),
    }


def _extra_fields(change: Change) -> Json:
    """Return what only one kind of change has."""
    match change:
        case DeleteTopic():
            return {"reason": change.reason}
        case ReassignTopic():
            return {"why": change.why.value, "copied_bytes": change.copied_bytes}
        case ConfigureTopic():
            return {
                "broker_defaults": dict(sorted(change.broker_defaults.items())),
                "differing_defaults": msgspec.to_builtins(dict(sorted(change.differing_defaults.items()))),
            }
        case CreateTopic() | ExpandTopic():
            return {}
    assert_never(change)


def _summary(plan: Plan) -> Json:
    return {
        **{str(action): count for action, count in plan.action_counts.items()},
        **{word.value: len(plan.with_gate(word)) for word in GateWord},
        "blocked": len(plan.change_set.blocked),
        "drift": len(plan.change_set.drift),
        "unmanaged": len(plan.change_set.unmanaged),
        "paused": len(plan.change_set.paused),
    }


def _encoded(document: Json) -> str:
    """Write the text with its checksum: one line for each key and list entry, so that a diff shows the change."""
    complete = {**document, "checksum": sha256_of(document)}
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_lines(value)}" for key, value in complete.items()) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(entry)}" for entry in value) + "\n  ]"
    return json.dumps(value)


def _decoded(text: str, kind: type[SomeFile]) -> tuple[SomeFile, Json]:
    """Return the file, and its JSON; the error is the first of version, checksum and fields that is wrong."""
    try:
        with json_errors():
            raw = msgspec.json.decode(text, type=dict[str, object])
            checksum = raw.pop("checksum", None)
            computed = sha256_of(raw)
    except JsonError as error:
        raise ArtifactError(f"the plan is not readable JSON ({error}); plan again") from error
    _check_version(raw.get("format_version"))
    if checksum != computed:
        raise ArtifactError("the plan's checksum is wrong: the file was changed or cut off; plan again")
    try:
        with json_errors():
            return msgspec.convert({**raw, "checksum": checksum}, type=known(kind), str_keys=True), raw
    except JsonError as error:
        raise ArtifactError(f"the plan has a wrong field ({error}); plan again") from error


def _check_version(version: object) -> None:
    major = version.partition(".")[0] if isinstance(version, str) else None
    if major != FORMAT_VERSION.partition(".")[0]:
        found = version if isinstance(version, str) else "none"
        raise FormatVersionError(
            f"the plan has format version {found}, this program reads {FORMAT_VERSION} and other minor versions of it; "
            "plan again with this program, or read the file with the program that wrote it"
        )


def change_set_of(document: AnyPlanFile, changes: Sequence[Change]) -> ChangeSet:
    """Return what the file says beside its changes, with these changes."""
    return ChangeSet(
        target=document.target,
        source=document.source,
        cluster=document.facts,
        changes=tuple(changes),
        blocked=document.blocked,
        drift=document.drift,
        unmanaged=document.unmanaged,
        paused=document.paused,
        activity=document.activity,
        load=document.load,
        rack_losses=document.rack_losses,
        log_bytes=document.log_bytes,
        throttle=document.throttle,
        move_obstacles=document.move_obstacles,
        warnings=document.warnings,
    )


KINDS: Mapping[Action, type[Change]] = {
    "create": CreateTopic,
    "expand": ExpandTopic,
    "configure": ConfigureTopic,
    "reassign": ReassignTopic,
    "delete": DeleteTopic,
}


def _changes(document: ChangesFile | PlanFile, raw: Json) -> Iterator[Change]:
    entries = cast("list[dict[str, object]]", raw["changes"])  # checked with the document
    for entry, values in zip(document.changes, entries, strict=True):
        change = change_of(entry, values)
        if digest_of(change, document.target) != entry.digest or entry.address != change.address:
            raise ArtifactError(f"{entry.address}: the digest does not match the change; plan again")
        yield change


def change_of(entry: ChangeEntry, values: Json) -> Change:
    """The fields of a change are those of its entry; ``before`` has them with ``_before``, but for a delete."""
    before, after = (cast("dict[str, object]", values[side] or {}) for side in ("before", "after"))
    earlier = {f"{name}_before": value for name, value in before.items()}
    try:
        with json_errors():
            return msgspec.convert({**values, **earlier, **(after or before)}, KINDS[entry.actions[0]], str_keys=True)
    except JsonError as error:
        raise ArtifactError(f"{entry.address}: the change lacks a value ({error}); plan again") from error
