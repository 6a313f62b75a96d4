"""What a ZooKeeper session can see and do, and what its servers report.

Rights follow from ACLs and from the identity that the server gives the session.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

import msgspec
from kazoo.protocol.serialization import int_struct, read_string
from kazoo.security import Permissions

from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.lease import LEASE, ROOT, is_stray
from topicops.edges.zookeeper.multi_read import read_batched, read_pipelined
from topicops.edges.zookeeper.reader import BROKERS, CONFIGS, MIGRATION, TOPICS, ZooKeeperReader
from topicops.edges.zookeeper.session import Znode, ZooKeeperSession
from topicops.features.ask.doctor.values import Migration, ZooKeeperFacts, ZooKeeperServer
from topicops.model.errors import ClusterError, UndecodableZnodeError
from topicops.model.json_types import JsonError, json_errors
from topicops.model.printable import address, printable

T = TypeVar("T")
FEATURE = "/feature"
KNOWS_IDENTITIES = (3, 7)
"""The first release of ZooKeeper that answers ``WhoAmI``."""
PATIENCE_S = 4.0
"""Seconds that one server may take for ``srvr``."""
MOST_ANSWER_BYTES = 1 << 16
_VERSION = re.compile(r"^Zookeeper version: ([0-9][^-, ]*)", re.MULTILINE)
_MODE = re.compile(r"^Mode: (\S+)", re.MULTILINE)


class WhoAmI:
    """The request for the identities that a server gives this session; known since 3.7.

    Source: org.apache.zookeeper.ZooDefs.OpCode#whoAmI (107), WhoAmIResponse.
    """

    type: ClassVar[int] = 107

    def serialize(self) -> bytes:
        return b""

    def deserialize(self, reply: bytes, offset: int) -> tuple[str, ...]:
        """Give ``scheme:id`` of each identity."""
        (count,) = int_struct.unpack_from(reply, offset)
        offset += int_struct.size
        found = []
        for _ in range(count):
            scheme, offset = read_string(reply, offset)
            user, offset = read_string(reply, offset)
            found.append(f"{scheme}:{user}")
        return tuple(found)


class _Registered(msgspec.Struct):
    timestamp: str


def zookeeper_facts(reader: ZooKeeperReader, *, tls: ssl.SSLContext | None = None) -> ZooKeeperFacts:
    """Read all that ``doctor`` asks of ZooKeeper; ``tls`` is for connections to single servers, outside the session."""
    session = reader.session
    hosts = session.client.hosts
    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        servers = tuple(pool.map(lambda place: _server(place[0], int(place[1]), tls), hosts))
    # An older server hangs up on the request, maybe only after the session seems to be back.
    releases = [re.match(r"([0-9]{1,9})\.([0-9]{1,9})", server.version or "") for server in servers]
    may_know = all(found is None or (int(found[1]), int(found[2])) >= KNOWS_IDENTITIES for found in releases)
    identities = identities_of(session) if may_know else None
    # A server may hang up on a request that it does not know only now, after it has answered later ones.
    return reader.connected(lambda: _facts(reader, servers, identities))


def _facts(
    reader: ZooKeeperReader, servers: tuple[ZooKeeperServer, ...], identities: tuple[str, ...] | None
) -> ZooKeeperFacts:
    session = reader.session
    names = [name for name in session.children(BROKERS) or () if name.isascii() and name.isdecimal() and len(name) < 11]
    read = {int(name): session.get(f"{BROKERS}/{name}") for name in sorted(names, key=int)}
    registrations = {broker: znode for broker, znode in read.items() if znode is not None and _timestamp(znode)}
    topics = set(session.children(TOPICS) or ())  # before the configs: a broker writes a new topic's config first
    root, lease, feature, feature_problem = session.get(ROOT), session.get(LEASE), session.get(FEATURE), ""
    try:
        if feature is not None:
            znodes.decode_feature(FEATURE, feature.data)
    except UndecodableZnodeError as error:
        feature_problem = str(error)
    stamped = [znode for znode in (*registrations.values(), session.get(TOPICS), root) if znode is not None]
    return ZooKeeperFacts(
        chroot=session.chroot,
        servers=servers,
        identities=identities,
        knows_multi_read=reader.knows_multi_read,
        migration=_migration(session),
        feature_problem=feature_problem,
        has_lease_root=root is not None,
        stray_lease=f"{session.chroot}{LEASE}" if lease is not None and is_stray(lease) else "",
        may_hold_lease=_may_create(session, ROOT if root else "/", identities),
        topics_without_config=tuple(sorted(topics - set(session.children(CONFIGS) or ()))),
        clocks_ahead_ms={broker: (_timestamp(z) or z.stat.mtime) - z.stat.mtime for broker, z in registrations.items()},
        newest_stamp_ms=max((znode.stat.mtime for znode in stamped), default=0),
        read_at_ms=time.time_ns() // 1_000_000,
    )


def undecodable_znodes(reader: ZooKeeperReader) -> tuple[str, ...]:
    """Return ``path: problem; remedy`` of every topic, state and config znode that a snapshot could not decode.

    A snapshot stops at the first one. Raises ``ClusterError`` when the session is lost.
    """

    def found() -> tuple[str, ...]:
        children = reader.session.children
        topics, configs = ([f"{path}/{name}" for name in children(path) or ()] for path in (TOPICS, CONFIGS))
        decoded, of_topics = _tried(reader, topics, znodes.decode_topic)
        states = [f"{path}/partitions/{p}/state" for path, topic in decoded.items() for p in sorted(topic.partitions)]
        _, of_states = _tried(reader, states, znodes.decode_state)
        return (*of_topics, *of_states, *_tried(reader, configs, znodes.decode_config)[1])

    return reader.connected(found)


def _tried(
    reader: ZooKeeperReader, paths: Sequence[str], decode: Callable[[str, bytes | None], T]
) -> tuple[dict[str, T], list[str]]:
    """Return the decoded znodes by path, and the problems of the others."""
    read = read_batched if reader.knows_multi_read else read_pipelined
    decoded, problems = {}, []
    for path, znode in zip(paths, read(reader.session, paths), strict=True):
        if znode is None:
            continue
        try:
            decoded[path] = decode(path, znode.data)
        except UndecodableZnodeError as error:
            problems.append(str(error))
    return decoded, problems


def _timestamp(znode: Znode) -> int | None:
    """Return when the broker wrote it, by its own clock; None if it does not contain that."""
    try:
        with json_errors():
            text = msgspec.json.decode(znode.data or b"", type=_Registered).timestamp
    except JsonError:
        return None
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _migration(session: ZooKeeperSession) -> Migration:
    znode = session.get(MIGRATION)
    if znode is None:
        return "none"
    try:
        return "begun" if znodes.decode_migration(MIGRATION, znode.data).has_begun else "prepared"
    except UndecodableZnodeError:
        return "none"  # the snapshot reads it too, and reports the problem


def identities_of(session: ZooKeeperSession, *, request: type[WhoAmI] = WhoAmI) -> tuple[str, ...] | None:
    """Return the identities of this session at the server, ``scheme:id`` each; None if it lacks the request."""
    pending = session.client.handler.async_result()
    session.client._call(request(), pending)  # noqa: SLF001 - kazoo has no public way to add a request
    try:
        found: tuple[str, ...] | None = session.wait_for("/", pending)
    except ClusterError:
        # A server before 3.7 closes the connection on a request that it does not know.
        if not session.reconnected():
            raise
        return None
    return None if found is None else tuple(printable(identity) for identity in found)


def _may_create(session: ZooKeeperSession, path: str, identities: Sequence[str] | None) -> bool | None:
    """Return whether the ACL of ``path`` lets one of ``identities`` create a znode below it; None means not known."""
    try:
        found = session.wait_for(path, session.client.get_acls_async(path))
    except ClusterError:
        return None
    if found is None:
        return None
    creators = [acl.id for acl in found[0] if acl.perms & Permissions.CREATE]
    if any(creator.scheme == "world" for creator in creators):
        return True
    if identities is None:
        return None
    # A digest's identity lacks the hash that follows the user in its ACL.
    named = [f"{creator.scheme}:{creator.id}:" for creator in creators]
    return any(creator.startswith(f"{identity}:") for creator in named for identity in identities)


def _server(host: str, port: int, tls: ssl.SSLContext | None) -> ZooKeeperServer:
    """Ask one server by ``srvr``, the one four-letter word that is allowed by default."""
    where = address(host, port)
    found = b""
    try:
        with socket.create_connection((host, port), timeout=PATIENCE_S) as plain:
            connection: Any = tls.wrap_socket(plain, server_hostname=host) if tls else plain
            connection.sendall(b"srvr")
            while len(found) < MOST_ANSWER_BYTES and (chunk := connection.recv(4096)):
                found += chunk
    except OSError as error:  # also those of TLS
        return ZooKeeperServer(address=where, problem=f"does not answer: {error}")
    answer = found.decode("utf-8", "replace")
    version, mode = _VERSION.search(answer), _MODE.search(answer)
    if version is None:
        said = printable(" ".join(answer.split())[:80]) or "nothing"
        return ZooKeeperServer(address=where, problem=f"srvr is answered by: {said}")
    return ZooKeeperServer(address=where, version=version[1], mode=mode[1] if mode else None)
