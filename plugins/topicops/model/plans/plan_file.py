"""The plan as a file: ``changes.json`` before the gate, ``plan.json`` after it.

docs/reference/artifacts.md gives the shape. Holds no clock reading, no host and no absolute path: equal plans are equal
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, TypeVar, assert_never

import msgspec

from topicops.model.canonical import sha256_of
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.plans.changes import (
    Action,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    Precondition,
    Target,
    before_and_after,
    digest_of,
)
from topicops.model.plans.load_table import LoadTable
from topicops.model.plans.plan import (
    FORMAT_VERSION,
    Blocked,
    ChangeSet,
    ClusterFacts,
    Drift,
    GatedChange,
    Paused,
    Plan,
    PlanSource,
    TopicActivity,
)
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk

Json = Mapping[str, object]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Side(msgspec.Struct, kw_only=True):
    """One side of a change; which fields are given depends on the action."""

    partitions: int = 0
    replication_factor: int = 0
    topic_id: str | None = None
    configs: dict[str, str | None] = {}
    assignment: dict[int, tuple[int, ...]] = {}


class ChangeEntry(msgspec.Struct, kw_only=True):
    address: str
    topic: str
    owner: str = ""
    """Since 1.1."""
    actions: tuple[Action]
    before: Side | None
    after: Side | None
    reason: str = ""
    location: Location
    risk: Risk
    codes: tuple[str, ...]
    reversible: bool
    digest: Sha256
    notes: tuple[str, ...]
    broker_defaults: dict[str, str] = {}
    """Since 1.1."""
    precondition: Precondition


class GatedEntry(ChangeEntry, kw_only=True):
    gate: GateWord
    reasons: tuple[str, ...]
    approvable: bool = msgspec.field(name="in_question")


class Document(msgspec.Struct, kw_only=True):
    """What both files hold."""

    format_version: Annotated[str, msgspec.Meta(pattern=r"^1\.[0-9]+$")]
    source: PlanSource
    target: Target
    facts: ClusterFacts
    blocked: tuple[Blocked, ...]
    drift: tuple[Drift, ...]
    unmanaged: tuple[str, ...]
    paused: tuple[Paused, ...]
    activity: dict[str, TopicActivity]
    load: LoadTable = LoadTable()
    """Since 1.1."""
    warnings: tuple[str, ...]
    checksum: Sha256


class ChangesDocument(Document, kw_only=True):
    changes: tuple[ChangeEntry, ...]


class PlanDocument(Document, kw_only=True):
    """``plan.json``, and what its schema is made from."""

    fingerprint: Sha256
    applyable: bool
    complete: bool
    errored: bool
    changes: tuple[GatedEntry, ...]
    summary: dict[str, int]


AnyDocument = TypeVar("AnyDocument", bound=Document)


def changes_to_json(change_set: ChangeSet) -> str:
    """The text of ``changes.json``."""
    entries = [_change_json(change, digest_of(change, change_set.target)) for change in change_set.changes]
    return _sealed({"format_version": FORMAT_VERSION, **_document_json(change_set, entries)})


def changes_from_json(text: str) -> ChangeSet:
    """Read ``changes.json``.

    Raises:
        ArtifactError: The file is damaged: its checksum, or a change's digest, does not match.
        FormatVersionError: A newer major version has written it.

    """
    document = _opened(text, ChangesDocument)
    return _change_set(document, [_change(entry, document.target) for entry in document.changes])


def plan_to_json(plan: Plan) -> str:
    """The text of ``plan.json``."""
    entries = [_gated_json(gated) for gated in plan.changes]
    head: Json = {
        "format_version": FORMAT_VERSION,
        "fingerprint": plan.fingerprint,
        "applyable": any(gated.gate is GateWord.RUN or gated.approvable for gated in plan.changes),
        "complete": True,
        "errored": False,
    }
    return _sealed({**head, **_document_json(plan.change_set, entries), "summary": _summary(plan)})


def plan_from_json(text: str) -> Plan:
    """Read ``plan.json``.

    Raises:
        ArtifactError: The file is damaged: its checksum, its fingerprint or a change's digest does not match.
        FormatVersionError: A newer major version has written it.

    """
    document = _opened(text, PlanDocument)
    if document.errored or not document.complete:
        raise ArtifactError("the plan is not complete; make it again")
    gated = tuple(_gated(entry, document.target) for entry in document.changes)
    plan = Plan(change_set=_change_set(document, [entry.change for entry in gated]), changes=gated)
    if plan.fingerprint != document.fingerprint:
        raise ArtifactError("the plan's fingerprint is not that of its changes; make the plan again")
    return plan


def _document_json(change_set: ChangeSet, entries: Sequence[Json]) -> Json:
    return {
        "source": _plain(change_set.source),
        "target": _plain(change_set.target),
        "facts": _plain(change_set.facts),
        "changes": entries,
        "blocked": [{"address": blocked.address, **_plain(blocked)} for blocked in change_set.blocked],
        "drift": [_plain(drift) for drift in change_set.drift],
        "unmanaged": list(change_set.unmanaged),
        "paused": [_plain(paused) for paused in change_set.paused],
        "activity": {topic: _plain(change_set.activity[topic]) for topic in sorted(change_set.activity)},
        "load": _plain(change_set.load),
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
        **_of_its_kind(change),
        "location": _plain(change.location),
        "risk": change.risk.value,
        "codes": list(change.codes),
        "reversible": change.reversible,
        "digest": digest,
        "notes": list(change.notes),
        "precondition": change.precondition.to_json(),
    }


def _of_its_kind(change: Change) -> Json:
    """What a reviewer of one kind needs beside its two sides."""
    match change:
        case DeleteTopic():
            return {"reason": change.reason}
        case ConfigureTopic():
            return {"broker_defaults": dict(sorted(change.broker_defaults.items()))}
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


def _sealed(document: Json) -> str:
    """One line a key, and one a list's entry: quick to write, and a diff of two plans shows the change."""
    sealed = {**document, "checksum": sha256_of(document)}
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_lines(value)}" for key, value in sealed.items()) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(entry)}" for entry in value) + "\n  ]"
    return json.dumps(value)


def _opened(text: str, kind: type[AnyDocument]) -> AnyDocument:
    """Look at the version, then the checksum, then the shape: the first that is wrong is the answer."""
    try:
        raw = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise ArtifactError(f"the plan is no readable JSON ({error}); make it again") from error
    _check_version(raw.get("format_version"))
    checksum = raw.pop("checksum", None)
    if checksum != sha256_of(raw):
        raise ArtifactError("the plan's checksum is wrong: the file was changed or cut off; make the plan again")
    try:
        return msgspec.convert({**raw, "checksum": checksum}, type=kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise ArtifactError(f"the plan has not the shape it should have ({error}); make it again") from error


def _check_version(version: object) -> None:
    major = version.partition(".")[0] if isinstance(version, str) else None
    if major != FORMAT_VERSION.partition(".")[0]:
        found = version if isinstance(version, str) else "none"
        raise FormatVersionError(
            f"the plan has format version {found}, this program reads {FORMAT_VERSION} and what is like it; "
            "make the plan again with this program, or read it with the one that wrote it"
        )


def _change_set(document: Document, changes: Sequence[Change]) -> ChangeSet:
    return ChangeSet(
        target=document.target,
        source=document.source,
        facts=document.facts,
        changes=tuple(changes),
        blocked=document.blocked,
        drift=document.drift,
        unmanaged=document.unmanaged,
        paused=document.paused,
        activity=document.activity,
        load=document.load,
        warnings=document.warnings,
    )


def _gated(entry: GatedEntry, target: Target) -> GatedChange:
    return GatedChange(
        change=_change(entry, target),
        digest=entry.digest,
        gate=entry.gate,
        reasons=entry.reasons,
        approvable=entry.approvable,
    )


def _change(entry: ChangeEntry, target: Target) -> Change:
    change = READERS[entry.actions[0]](entry, entry.before or Side(), entry.after or Side())
    if digest_of(change, target) != entry.digest or entry.address != change.address:
        raise ArtifactError(f"{entry.address}: the digest is not that of the change; make the plan again")
    return change


def _create(entry: ChangeEntry, _: Side, after: Side) -> CreateTopic:
    return CreateTopic(
        topic=entry.topic,
        owner=entry.owner,
        location=entry.location,
        risk=entry.risk,
        codes=entry.codes,
        reversible=entry.reversible,
        precondition=entry.precondition,
        notes=entry.notes,
        partitions=after.partitions,
        replication_factor=after.replication_factor,
        assignment=after.assignment,
        configs={name: value for name, value in after.configs.items() if value is not None},
    )


def _expand(entry: ChangeEntry, before: Side, after: Side) -> ExpandTopic:
    return ExpandTopic(
        topic=entry.topic,
        owner=entry.owner,
        location=entry.location,
        risk=entry.risk,
        codes=entry.codes,
        reversible=entry.reversible,
        precondition=entry.precondition,
        notes=entry.notes,
        partitions_before=before.partitions,
        assignment_before=before.assignment,
        partitions=after.partitions,
        assignment=after.assignment,
    )


def _configure(entry: ChangeEntry, before: Side, after: Side) -> ConfigureTopic:
    return ConfigureTopic(
        topic=entry.topic,
        owner=entry.owner,
        location=entry.location,
        risk=entry.risk,
        codes=entry.codes,
        reversible=entry.reversible,
        precondition=entry.precondition,
        notes=entry.notes,
        configs_before=before.configs,
        configs=after.configs,
        broker_defaults=entry.broker_defaults,
    )


def _delete(entry: ChangeEntry, before: Side, _: Side) -> DeleteTopic:
    return DeleteTopic(
        topic=entry.topic,
        owner=entry.owner,
        location=entry.location,
        risk=entry.risk,
        codes=entry.codes,
        reversible=entry.reversible,
        precondition=entry.precondition,
        notes=entry.notes,
        topic_id=before.topic_id,
        partitions=before.partitions,
        reason=entry.reason,
    )


READERS: Mapping[Action, Callable[[ChangeEntry, Side, Side], Change]] = {
    "create": _create,
    "expand": _expand,
    "configure": _configure,
    "delete": _delete,
}
