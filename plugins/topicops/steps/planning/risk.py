"""risk: how much damage a change of a topic config can do; one row for each config of any release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import assert_never

from topicops.model.codes import Code
from topicops.model.specs.environment import Risk
from topicops.model.specs.topic_config import ConfigValue, ConfigValueError, parse

Rating = tuple[Risk, tuple[Code, ...]]
"""A risk and the codes that say why."""

FAR_UP = 4
"""An increase by this factor or more counts as far."""
FAR_DOWN = 4
"""A decrease to less than one part in this many counts as far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A number: the risk depends on whether it goes up or down."""

    up: Risk
    down: Risk
    far_up: Risk | None = None
    """Risk from ``FAR_UP`` times the old value on, or without a limit."""
    far_down: Risk | None = None
    """Risk below one part in ``FAR_DOWN`` of the old value."""
    code_down: Code | None = None
    unlimited: bool = False
    """Negative values mean no limit, which is larger than any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """true or false."""

    to_true: Risk
    to_false: Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyChange:
    """Every change has the same risk."""

    risk: Risk
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class NeverPlanned:
    """Only Kafka's own tools change it."""


Row = Ordered | Switch | AnyChange | NeverPlanned

_RETENTION = Ordered(
    up=Risk.NOTICE, far_up=Risk.RISKY, down=Risk.DESTRUCTIVE, code_down=Code.RETENTION_DELETES, unlimited=True
)
# -2 stands for "as much as in all", -1 for no limit: nothing local is larger than either.
_LOCAL_RETENTION = Ordered(up=Risk.NOTICE, down=Risk.RISKY, unlimited=True)
_BOUND = Ordered(up=Risk.NOTICE, down=Risk.RISKY)
_SEGMENT = Ordered(up=Risk.NOTICE, down=Risk.NOTICE, far_down=Risk.RISKY)
_RISKY = AnyChange(risk=Risk.RISKY)
_NOTICE = AnyChange(risk=Risk.NOTICE)

RISKS: Mapping[str, Row] = {
    "cleanup.policy": AnyChange(risk=Risk.DESTRUCTIVE, code=Code.CLEANUP_POLICY),
    "compression.gzip.level": _NOTICE,
    "compression.lz4.level": _NOTICE,
    "compression.type": _NOTICE,
    "compression.zstd.level": _NOTICE,
    "delete.retention.ms": _BOUND,
    "errors.deadletterqueue.group.enable": _NOTICE,
    "file.delete.delay.ms": _NOTICE,
    "flush.messages": _RISKY,
    "flush.ms": _RISKY,
    "follower.replication.throttled.replicas": NeverPlanned(),
    "index.interval.bytes": _NOTICE,
    "leader.replication.throttled.replicas": NeverPlanned(),
    "local.retention.bytes": _LOCAL_RETENTION,
    "local.retention.ms": _LOCAL_RETENTION,
    "max.compaction.lag.ms": _NOTICE,
    "max.decompressed.message.bytes": _BOUND,
    "max.message.bytes": Ordered(up=Risk.NOTICE, down=Risk.RISKY, code_down=Code.MESSAGE_SIZE_LOWERED),
    "message.downconversion.enable": _RISKY,
    "message.format.version": _RISKY,
    "message.timestamp.after.max.ms": _BOUND,
    "message.timestamp.before.max.ms": _BOUND,
    "message.timestamp.difference.max.ms": _BOUND,
    "message.timestamp.type": _RISKY,
    "min.cleanable.dirty.ratio": _NOTICE,
    "min.compaction.lag.ms": _NOTICE,
    "min.insync.replicas": Ordered(up=Risk.RISKY, down=Risk.RISKY),
    "preallocate": _NOTICE,
    "remote.copy.lag.bytes": _NOTICE,
    "remote.copy.lag.ms": _NOTICE,
    "remote.log.copy.disable": _RISKY,
    "remote.log.delete.on.disable": _RISKY,
    "remote.storage.enable": Switch(to_true=Risk.RISKY, to_false=Risk.DESTRUCTIVE),
    "retention.bytes": _RETENTION,
    "retention.ms": _RETENTION,
    "segment.bytes": _SEGMENT,
    "segment.index.bytes": _SEGMENT,
    "segment.jitter.ms": _NOTICE,
    "segment.ms": _SEGMENT,
    # True makes the controller elect at once, in each partition without a leader, a replica that lacks records; the
    # others then cut those records off. Source: KafkaController#processTopicUncleanLeaderElectionEnable (3.9), which
    # kafka.server.TopicConfigHandler calls for each such change.
    "unclean.leader.election.enable": Switch(to_true=Risk.DESTRUCTIVE, to_false=Risk.NOTICE),
}
UNKNOWN_CONFIG = _RISKY
"""Risk of an override that no known release has: a newer one or a person set it."""


def config_risk(name: str, before: str | None, after: str | None, default: str | None) -> Rating:
    """Return the risk of changing one override from ``before`` to ``after``.

    Args:
        before: Canonical; None: no override is live, so the broker's default applies.
        after: Canonical; None: the override is removed.
        default: The broker's own value; None: it could not be read, and the worse direction counts.
    """
    row = RISKS.get(name, UNKNOWN_CONFIG)
    old, new = _value(name, before, default), _value(name, after, default)
    if old is not None and old == new:
        return Risk.NOTICE, ()
    match row:
        case Ordered():
            return _ordered_risk(row, old, new)
        case Switch():
            return _switch_risk(row, new), ()
        case AnyChange():
            return row.risk, _codes(row.code)
        case NeverPlanned():
            raise ValueError(f"{name} is never planned")
    assert_never(row)


def worst(ratings: Iterable[Rating]) -> Rating:
    """Return the highest risk, and the codes of all, sorted."""
    every = tuple(ratings)
    risk = max((risk for risk, _ in every), key=lambda r: r.rank, default=Risk.NOTICE)
    return risk, tuple(sorted({code for _, codes in every for code in codes}))


def _value(name: str, text: str | None, default: str | None) -> ConfigValue | None:
    """Return the effective value; None means unknown, or text that no broker reads."""
    effective = default if text is None else text
    if effective is None:
        return None
    try:
        return parse(name, effective)
    except ConfigValueError:
        return None


def _ordered_risk(row: Ordered, old: ConfigValue | None, new: ConfigValue | None) -> Rating:
    before, after = _size(row, old), _size(row, new)
    if before is None or after is None:
        return worst([_down(row, far=True), _up(row, far=True)])
    if after > before:
        return _up(row, far=after >= FAR_UP * before)
    if after < before:
        return _down(row, far=after * FAR_DOWN < before)
    return Risk.NOTICE, ()


def _size(row: Ordered, value: ConfigValue | None) -> float | None:
    if not isinstance(value, int | float):
        return None
    return inf if row.unlimited and value < 0 else value


def _up(row: Ordered, *, far: bool) -> Rating:
    return (row.far_up or row.up) if far else row.up, ()


def _down(row: Ordered, *, far: bool) -> Rating:
    return (row.far_down or row.down) if far else row.down, _codes(row.code_down)


def _switch_risk(row: Switch, new: ConfigValue | None) -> Risk:
    if new is None:
        return max(row.to_true, row.to_false, key=lambda r: r.rank)
    return row.to_true if new else row.to_false


def _codes(code: Code | None) -> tuple[Code, ...]:
    return (code,) if code else ()
