"""Decodes the data of Kafka's znodes: one decoder for each kind that topicops reads.

Every decoder takes the znode's path, for the message, and its data; ``None`` and ``b""`` both mean no data. Decoders
refuse everything that Kafka refuses. For topic and config znodes they refuse more: Kafka reads ``{}`` as a topic
without partitions and broken config JSON as "no overrides", and a plan built on either would be wrong. A config znode
without data has no override: a person removed all of them by hand.

Source: kafka.zk.ZkData (1.1 to 3.9; only 1.1 reads a partition state without data as no state).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from topicops.model.errors import UndecodableZnodeError
from topicops.model.printable import address, printable

NEWEST_TOPIC_VERSION = 3
MIGRATION_VERSION = 0
FEATURE_VERSIONS = (1, 2)

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
PartitionId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Replicas = dict[PartitionId, tuple[Int32, ...]]
Raw = TypeVar("Raw")

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Endpoint(msgspec.Struct, frozen=True):
    """One listener of a broker."""

    listener: str
    host: str
    """Host without the brackets of an IPv6 address."""
    port: int
    protocol: str
    text: str
    """Endpoint as registered: ``LISTENER://host:port``."""


class FeatureRange(msgspec.Struct, frozen=True):
    min_version: int
    max_version: int


class BrokerZnode(msgspec.Struct, frozen=True):
    """``/brokers/ids/<id>``."""

    version: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    jmx_port: int
    features: Mapping[str, FeatureRange]


class TopicZnode(msgspec.Struct, frozen=True):
    """``/brokers/topics/<topic>``."""

    version: int
    partitions: Replicas
    written_id: str | UnsetType = msgspec.field(default=UNSET, name="topic_id")
    """Left out below inter-broker protocol 2.8; null stops the controller."""
    adding: Replicas = msgspec.field(default_factory=dict, name="adding_replicas")
    removing: Replicas = msgspec.field(default_factory=dict, name="removing_replicas")

    @property
    def topic_id(self) -> str | None:
        """None where it is left out or zero."""
        return None if self.written_id is UNSET or _ZERO_ID.fullmatch(self.written_id) else self.written_id


class StateZnode(msgspec.Struct, frozen=True):
    """``/brokers/topics/<topic>/partitions/<partition>/state``."""

    leader: Int32
    isr: tuple[Int32, ...]
    leader_epoch: Int32
    controller_epoch: Int32
    leader_recovery_state: int = 0
    """1 while the leader recovers from an unclean election."""


class ControllerZnode(msgspec.Struct, frozen=True, rename={"broker_id": "brokerid"}):
    """``/controller``."""

    broker_id: Int32
    kraft_controller_epoch: int | None = msgspec.field(default=None, name="kraftControllerEpoch")

    @property
    def is_kraft(self) -> bool:
        return self.kraft_controller_epoch is not None and self.kraft_controller_epoch >= 0


class MigrationZnode(msgspec.Struct, frozen=True):
    """``/migration``; every number but the version is -1 until a KRaft controller has taken over."""

    version: Int32
    kraft_controller_id: Int32
    kraft_controller_epoch: Int32
    kraft_metadata_offset: int
    kraft_metadata_epoch: Int32

    @property
    def has_begun(self) -> bool:
        return self.kraft_controller_epoch >= 0 or self.kraft_metadata_epoch >= 0


class FeatureZnode(msgspec.Struct, frozen=True):
    """``/feature``: which features the cluster has finalized, each with the highest level in use."""

    version: int
    is_enabled: bool
    levels: Mapping[str, int]


class ReassignedPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: PartitionId
    replicas: tuple[Int32, ...]


class _RawBroker(msgspec.Struct):
    version: int
    host: str | None = None
    port: int = -1
    jmx_port: int = -1
    endpoints: tuple[str, ...] | None = None
    listener_security_protocol_map: dict[str, str] | None = None
    rack: str | None = None
    features: dict[str, FeatureRange] = msgspec.field(default_factory=dict)


class _RawConfig(msgspec.Struct):
    """Kafka looks at no version here."""

    config: dict[str, str]


class _RawClusterId(msgspec.Struct):
    id: str


class _RawFeature(msgspec.Struct):
    version: Int32
    status: Int32
    features: dict[str, dict[str, Int32]]


class _RawReassignment(msgspec.Struct):
    partitions: tuple[ReassignedPartition, ...]


_decoder: Callable[[object], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)
"""Decoder of a type; built once, because a snapshot decodes a million znodes."""
_TOPIC = msgspec.json.Decoder(TopicZnode)
_STATE = msgspec.json.Decoder(StateZnode)

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_ZERO_ID = re.compile("A{21}[A-P]")
"""128 zero bits; the last four bits of the last character are not used."""

STOPS_CONTROLLER = (
    "no broker can be Kafka's controller while this znode exists, so the whole cluster is without one. "
    "A person must save its data, then repair it or remove it with zookeeper-shell; the controller comes back by itself"
)
FORGIVEN_TOPIC = (
    "Kafka reads it as a topic without partitions, and topicops makes no plan from that. "
    "A person must repair it, or remove it with zookeeper-shell and let the controller fail over"
)
NEWER_WRITER = "a newer Kafka, or a person, wrote it; use a topicops that knows this version, or repair the znode"
REPAIR_STATE = "Kafka cannot read it either; a person must find out which program wrote it: only the controller should"
REPAIR_CONFIG = (
    "Kafka reads broken config JSON as no overrides at all and refuses values that are not text. "
    "A person must write it as it should be: set any config of this topic with kafka-configs, then compare"
)
REPAIR_FEATURE = (
    "Kafka refuses it too, and without it no broker becomes controller. "
    "A person must save its data and remove it with zookeeper-shell: the next controller writes it again"
)
ASK_WHO_MIGRATES = "ask the person who migrates this cluster to KRaft; until then nothing is known about it"
REPAIR_BROKER = "restart that broker, so that it registers again; if the znode stays, find out which program wrote it"


def decode_broker(path: str, data: bytes | None) -> BrokerZnode:
    """Read a live broker's registration, of any version from 1 on; unknown later versions are read like the newest."""
    raw = _decoded(_RawBroker, path, data, REPAIR_BROKER)
    if raw.version < 1:
        raise _refused(path, f"version {raw.version} of a broker znode is not known", REPAIR_BROKER)
    try:
        endpoints = _endpoints(raw)
    except ValueError as error:
        raise _refused(path, str(error), REPAIR_BROKER) from error
    return BrokerZnode(raw.version, endpoints, raw.rack, raw.jmx_port, raw.features)


def decode_topic(path: str, data: bytes | None) -> TopicZnode:
    """Read a topic's assignment. The error says whether the znode stops the controller, and what a person must do."""
    try:
        found = _TOPIC.decode(data or b"")
    except _UNREADABLE as error:
        raise _refused(path, _problem(data, error), _remedy_of_topic(data)) from error
    if not 1 <= found.version <= NEWEST_TOPIC_VERSION:
        raise _refused(path, f"version {found.version} of a topic znode is not known", NEWER_WRITER)
    if found.written_id is not UNSET and not _TOPIC_ID.fullmatch(found.written_id):
        raise _refused(path, "topic_id is not 22 characters of URL-safe base64", STOPS_CONTROLLER)
    return found


def decode_state(path: str, data: bytes | None) -> StateZnode | None:
    """Read what the controller last wrote of a partition; None for what Kafka takes for no state: data without JSON."""
    if _is_blank(data):
        raise _refused(path, "holds no data", REPAIR_STATE)
    try:
        return _STATE.decode(data or b"")
    except msgspec.ValidationError as error:
        raise _refused(path, _problem(data, error), REPAIR_STATE) from error
    except _UNREADABLE:
        return None


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """Read a topic's overrides, raw text as stored; none where there is no data."""
    return {} if _is_blank(data) else _decoded(_RawConfig, path, data, REPAIR_CONFIG).config


def decode_controller(path: str, data: bytes | None) -> ControllerZnode:
    remedy = "restart the broker that holds the controller, or have the znode removed: another broker takes over"
    return _decoded(ControllerZnode, path, data, remedy)


def decode_controller_epoch(path: str, data: bytes | None) -> int:
    """Read how many controllers this cluster has had; the znode holds plain text."""
    text = (data or b"").decode("ascii", "replace").strip()
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise _refused(path, "holds no whole number", "find out which program wrote it: Kafka only adds to it")
    return int(text)


def decode_cluster_id(path: str, data: bytes | None) -> str:
    found = _decoded(_RawClusterId, path, data, "the brokers know the id: kafka-cluster").id
    if not found.isprintable() or not found:
        raise _refused(path, "the id has characters that no cluster id has", "find out which program wrote it")
    return found


def decode_migration(path: str, data: bytes | None) -> MigrationZnode:
    """Read how far a migration to KRaft is. Source: kafka.zk.MigrationZNode#decode (3.9), which wants version 0."""
    found = _decoded(MigrationZnode, path, data, ASK_WHO_MIGRATES)
    if found.version != MIGRATION_VERSION:
        raise _refused(path, f"version {found.version} of a migration znode is not known", ASK_WHO_MIGRATES)
    return found


def decode_feature(path: str, data: bytes | None) -> FeatureZnode:
    """Read the finalized features; each has a lowest level up to version 1, and none from version 2 on.

    Source: kafka.zk.FeatureZNode#decode, org.apache.kafka.server.common.Features (3.9).
    """
    raw = _decoded(_RawFeature, path, data, REPAIR_FEATURE)
    if raw.version not in FEATURE_VERSIONS:
        raise _refused(path, f"version {raw.version} of a feature znode is not known", REPAIR_FEATURE)
    if raw.status not in (0, 1):
        raise _refused(path, f"status {raw.status} is neither 0, disabled, nor 1, enabled", REPAIR_FEATURE)
    try:
        levels = {name: _finalized_level(name, found, raw.version) for name, found in raw.features.items()}
    except ValueError as error:
        raise _refused(path, str(error), REPAIR_FEATURE) from error
    return FeatureZnode(raw.version, raw.status == 1, levels)


def decode_reassignment(path: str, data: bytes | None) -> tuple[ReassignedPartition, ...]:
    """Read the moves in ``/admin/reassign_partitions``; a znode without data has none."""
    remedy = "Kafka ignores it and it stays; have it removed with zookeeper-shell"
    return _decoded(_RawReassignment, path, data, remedy).partitions if data else ()


def _decoded(kind: type[Raw], path: str, data: bytes | None, remedy: str) -> Raw:
    try:
        return cast("Raw", _decoder(kind).decode(data or b""))
    except _UNREADABLE as error:
        raise _refused(path, _problem(data, error), remedy) from error


def _refused(path: str, problem: str, remedy: str) -> UndecodableZnodeError:
    # Names of znodes come from outside: ZooKeeper lets characters through that change a line's direction.
    return UndecodableZnodeError(printable(path), problem, remedy, stops_controller=remedy == STOPS_CONTROLLER)


def _is_blank(data: bytes | None) -> bool:
    """Return whether there is nothing but JSON's white space, in which Kafka's parser finds no value and no error."""
    return not (data or b"").strip(b" \t\r\n")


def _problem(data: bytes | None, error: Exception) -> str:
    if _is_blank(data):
        return "holds no data"
    if isinstance(error, msgspec.ValidationError):
        return f"holds other JSON than Kafka writes: {printable(str(error))}"
    return f"holds no readable JSON: {printable(str(error))}"


def _remedy_of_topic(data: bytes | None) -> str:
    """Kafka accepts text that is no JSON, and an object without partitions; all else stops its controller."""
    try:
        value = msgspec.json.decode(data or b"")
    except _UNREADABLE:
        return FORGIVEN_TOPIC if data else STOPS_CONTROLLER
    if not isinstance(value, dict):
        return STOPS_CONTROLLER
    if "partitions" not in value:
        return FORGIVEN_TOPIC
    return STOPS_CONTROLLER if "version" in value else NEWER_WRITER


def _finalized_level(name: str, levels: Mapping[str, int], version: int) -> int:
    """Give the highest level; the lowest one is checked in version 1 only."""
    lowest = levels.get("min_version_level") if version == 1 else 1
    highest = levels.get("max_version_level")
    if lowest is None or highest is None or not 1 <= lowest <= highest:
        raise ValueError(f"feature {printable(name)} has the levels {lowest} to {highest}")
    return highest


def _endpoints(raw: _RawBroker) -> tuple[Endpoint, ...]:
    if raw.version == 1:
        if raw.host is None:
            raise ValueError("names no host")
        text = f"PLAINTEXT://{address(raw.host, raw.port)}"
        return (Endpoint("PLAINTEXT", raw.host, raw.port, "PLAINTEXT", text),)
    if not raw.endpoints:
        raise ValueError("names no endpoint")
    return tuple(_endpoint(text, raw.listener_security_protocol_map) for text in raw.endpoints)


def _endpoint(text: str, protocols: Mapping[str, str] | None) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"endpoint {text!r} is not LISTENER://host:port")
    listener = match[1].upper()
    protocol = (protocols or {name: name for name in PROTOCOLS}).get(listener, "").upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"endpoint {text!r} has no known security protocol")
    return Endpoint(listener, match[2], int(match[3]), protocol, text)
