"""A TCP proxy on loopback, between a client and ZooKeeper or a broker, that recognises each request.

``Relay`` only passes bytes, and can be cut. ``FrameProxy`` asks a rule what to do with each request, by its name: cut
the connection before the request or in place of the reply, drop the reply, delay it, or send it byte by byte. The rule
may do more before it returns.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

LOOPBACK = "127.0.0.1"
_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">ii")

KAFKA_APIS: Mapping[int, str] = {
    3: "Metadata",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    32: "DescribeConfigs",
    35: "DescribeLogDirs",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
}
"""Requests that tests name; others have their number as name. Source: org.apache.kafka.common.protocol.ApiKeys."""
FLEXIBLE_FROM: Mapping[int, int] = {19: 5, 37: 2, 44: 1}
"""The version from which a dry run's mark is followed by one byte more, by number."""
ZOOKEEPER_REQUESTS: Mapping[int, str] = {
    1: "create",
    2: "delete",
    3: "exists",
    4: "getData",
    5: "setData",
    8: "getChildren",
    9: "sync",
    11: "ping",
    12: "getChildren2",
    14: "multi",
    22: "multiRead",
    -11: "close",
}
"""Source: org.apache.zookeeper.ZooDefs.OpCode."""


class Fate(Enum):
    """What the proxy does with one request."""

    PASS = auto()
    CUT_BEFORE = auto()
    """The connection ends, and the server never gets the request."""
    CUT_AFTER = auto()
    """The server answers, and the connection ends in place of the answer."""
    CUT_MIDWAY = auto()
    """The connection ends after half of the answer."""
    SWALLOW = auto()
    """No answer ever comes, and the connection stays open."""
    DELAY = auto()
    """The answer, and all answers after it, come ``DELAY_S`` late."""
    SLICE = auto()
    """The answer comes in packets of one byte."""


DELAY_S = 3.0
Rule = Callable[[str], Fate]
"""Called with the name of each request before it is passed on, by many threads at once; may block."""
Rewrite = Callable[[bytes], bytes]
"""Gives the reply to pass on, of the same length."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A protocol whose frames each begin with their length in four bytes."""

    name_of: Callable[[bytes, bool], str]
    """Name of a request, from its bytes and whether it is the connection's first."""
    number_at: slice
    """The bytes of a request with which its reply begins."""


class Relay:
    """Passes bytes between clients and one server; ``cut`` ends the connections, ``close`` the relay too.

    ``hold`` is a network that loses everything without an error, until ``release``.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server((LOOPBACK, 0))
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._may_pass = threading.Event()
        self._may_pass.set()
        self.port: int = self._listener.getsockname()[1]
        self.hosts = f"{LOOPBACK}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut(self) -> None:
        self.cut_clients()
        ends, self._servers = self._servers, []
        for end in ends:
            _shut(end)

    def cut_clients(self) -> None:
        """End the connections to clients; while bytes are held, the server does not notice."""
        ends, self._clients = self._clients, []
        for end in ends:
            _shut(end)

    def hold(self) -> None:
        self._may_pass.clear()

    def release(self) -> None:
        self._may_pass.set()

    def close(self) -> None:
        _shut(self._listener)
        self.cut()
        self.release()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:  # the server is down
                _shut(client)
                continue
            self._clients.append(client)
            self._servers.append(server)
            for pump in self._pumps(client, server):
                threading.Thread(target=pump, daemon=True).start()

    def _pumps(self, client: socket.socket, server: socket.socket) -> Sequence[Callable[[], None]]:
        return (lambda: self._pump(client, server)), (lambda: self._pump(server, client))

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._may_pass.wait()
                sink.sendall(data)
        self._may_pass.wait()
        _shut(source)
        _shut(sink)


class FrameProxy(Relay):
    """A relay with a rule that decides on each request.

    Args:
        target: ``host:port`` of the server.
        wire: The protocol of client and server.
        rule: Decides on each request.
        rewrite: Changes each reply.

    """

    def __init__(self, target: str, *, wire: Wire, rule: Rule, rewrite: Rewrite = lambda reply: reply) -> None:
        self.wire = wire
        self.rule = rule
        self.rewrite = rewrite
        super().__init__(target)

    def _pumps(self, client: socket.socket, server: socket.socket) -> Sequence[Callable[[], None]]:
        passing = _Passing(self, client, server)
        return passing.requests, passing.replies


class _Passing:
    """One connection of a ``FrameProxy``."""

    def __init__(self, proxy: FrameProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._fates: dict[bytes, Fate] = {}
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def requests(self) -> None:
        self._until_closed(self._pass_requests)

    def replies(self) -> None:
        self._until_closed(self._pass_replies)

    def _until_closed(self, work: Callable[[], None]) -> None:
        try:
            with suppress(OSError):
                work()
        finally:
            _shut(self._client)
            _shut(self._server)

    def _pass_requests(self) -> None:
        is_first = True
        for frame in _frames(self._client):
            fate = self._proxy.rule(self._proxy.wire.name_of(frame, is_first))
            if fate is Fate.CUT_BEFORE:
                return
            if fate is not Fate.PASS:
                self._fates[frame[self._proxy.wire.number_at]] = fate
            self._server.sendall(_LENGTH.pack(len(frame)) + frame)
            is_first = False

    def _pass_replies(self) -> None:
        for frame in _frames(self._server):
            reply = _LENGTH.pack(len(frame)) + self._proxy.rewrite(frame)
            match self._fates.pop(frame[:4], Fate.PASS):
                case Fate.CUT_AFTER:
                    return
                case Fate.CUT_MIDWAY:
                    self._client.sendall(reply[: len(reply) // 2])
                    return
                case Fate.SWALLOW:
                    continue
                case Fate.SLICE:
                    for byte in reply:
                        self._client.sendall(bytes([byte]))
                    continue
                case Fate.DELAY:
                    time.sleep(DELAY_S)
            self._client.sendall(reply)


class BrokerProxies:
    """One proxy in front of each broker: a client that bootstraps here stays behind the proxies.

    In replies the ports of the brokers are replaced by those of the proxies. All listen on
    127.0.0.1, so that lengths stay.
    """

    def __init__(self, ports: Sequence[int], rule: Rule) -> None:
        self._stack = ExitStack()
        self._ports: dict[bytes, bytes] = {}
        self.proxies = [
            self._stack.enter_context(FrameProxy(f"{LOOPBACK}:{port}", wire=KAFKA, rule=rule, rewrite=self._rewritten))
            for port in ports
        ]
        for port, proxy in zip(ports, self.proxies, strict=True):
            self._ports[_address(port)] = _address(proxy.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(proxy.hosts for proxy in self.proxies)

    def _rewritten(self, reply: bytes) -> bytes:
        for real, ours in self._ports.items():
            reply = reply.replace(real, ours)
        return reply


def zookeeper_proxy(target: str, rule: Rule) -> FrameProxy:
    return FrameProxy(target, wire=ZOOKEEPER, rule=rule)


def kafka_request(frame: bytes, _: bool) -> str:
    """``CreateTopics``; ``dry CreateTopics`` for one that only validates."""
    api, version = struct.unpack_from(">hh", frame)
    name = KAFKA_APIS.get(api, str(api))
    if api not in FLEXIBLE_FROM:
        return name
    is_dry = frame[-2] if version >= FLEXIBLE_FROM[api] else frame[-1]
    return f"dry {name}" if is_dry else name


def zookeeper_request(frame: bytes, is_first: bool) -> str:
    """``connect`` for the first one of a connection."""
    if is_first:
        return "connect"
    _, code = _HEADER.unpack_from(frame)
    return ZOOKEEPER_REQUESTS.get(code, str(code))


KAFKA = Wire(kafka_request, number_at=slice(4, 8))
ZOOKEEPER = Wire(zookeeper_request, number_at=slice(4))


@dataclass(frozen=True, slots=True)
class Strike:
    """A fate for one request only."""

    name: str
    """The request's name; empty: any but a ping."""
    fate: Fate
    number: int = 1
    """Which one of that name, counted from 1."""
    before: Callable[[], None] = lambda: None
    """Done before the request goes on, or the connection ends."""


class Strikes:
    """A rule: each strike once, everything else passes. ``done`` lists what it did."""

    def __init__(self, *strikes: Strike) -> None:
        self._strikes = strikes
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.done: list[str] = []

    def __call__(self, name: str) -> Fate:
        with self._lock:
            self._seen[name] += 1
            if name != "ping":
                self._seen[""] += 1
            due = [strike for strike in self._strikes if self._is_due(strike, name)]
        for strike in due:
            self.done.append(f"{name} #{strike.number}: {strike.fate.name}")
            strike.before()
        return due[0].fate if due else Fate.PASS

    def _is_due(self, strike: Strike, name: str) -> bool:
        fits = strike.name == name or (not strike.name and name != "ping")
        return fits and self._seen[strike.name] == strike.number


def _frames(source: socket.socket) -> Iterator[bytes]:
    """The frames of a connection, until it ends."""
    while (head := _exactly(source, _LENGTH.size)) is not None:
        body = _exactly(source, _LENGTH.unpack(head)[0])
        if body is None:
            return
        yield body


def _exactly(source: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            return None
        data += more
    return bytes(data)


def _address(port: int) -> bytes:
    return LOOPBACK.encode() + _LENGTH.pack(port)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
