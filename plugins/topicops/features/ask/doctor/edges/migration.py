"""What a migration to KRaft would copy or leave behind.

Source: kafka.zk.migration (3.9) reads ``/config/{topics,clients,users,brokers,ips}``, topics and their states,
``/delegation_token`` and ACLs, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kazoo.exceptions import NoAuthError

from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.reader import CONTROLLER, ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.features.ask.doctor.values import MigrationFacts
from topicops.model.errors import ClusterError, UndecodableZnodeError
from topicops.model.printable import printable

T = TypeVar("T")
CONFIG = "/config"
COPIED_CONFIGS = [f"{CONFIG}/{kind}" for kind in ("brokers", "changes", "clients", "ips", "topics", "users")]
"""Znodes below ``/config`` that a migration reads, and the notifications, which need no copy."""
ELECTION = "/admin/preferred_replica_election"
TOKENS = "/delegation_token/tokens"
SCRAM = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
ENCRYPTED = ("sasl.jaas.config", ".password", "ssl.keystore.key", "ssl.keystore.certificate.chain", "certificates")
"""Endings of settings that a broker encrypts. Source: kafka.server.DynamicBrokerConfig#isPasswordConfig."""
WINDOW = 500
"""Number of requests in flight."""


def migration_facts(reader: ZooKeeperReader) -> MigrationFacts:
    """Read all that ``doctor --for-kraft`` asks of ZooKeeper. Raises ``UndecodableZnodeError`` for ``/controller``."""
    return reader.connected(lambda: _facts(reader.session))


def _facts(session: ZooKeeperSession) -> MigrationFacts:
    reading = _Reading(session)
    users = reading.below(f"{CONFIG}/users")
    clients = [path for user in users for path in reading.below(f"{user}/clients")]
    kinds = [path for kind in ("clients", "ips") for path in reading.below(f"{CONFIG}/{kind}")]
    quotas = reading.configs_of([*users, *clients, *kinds])
    settings = reading.configs_of(reading.below(f"{CONFIG}/brokers"))
    election, holder = session.get(ELECTION), session.get(CONTROLLER)
    controller = znodes.decode_controller(CONTROLLER, holder.data) if holder is not None else None
    return MigrationFacts(
        kraft_controller=controller.broker_id if controller and controller.is_kraft else None,
        broken_quotas=(*reading.broken, *_not_numbers(quotas)),
        scram_users=tuple(path.rpartition("/")[2] for path, found in quotas.items() if SCRAM & found.keys()),
        encrypted=tuple(
            f"{path} ({name})" for path, found in settings.items() for name in sorted(found) if name.endswith(ENCRYPTED)
        ),
        delegation_tokens=len(reading.below(TOKENS)),
        unknown_configs=tuple(printable(path) for path in reading.below(CONFIG) if path not in COPIED_CONFIGS),
        election=ELECTION if election is not None else "",
        hidden=tuple(reading.hidden),
    )


class _Reading:
    """Reads znodes, and notes those that this identity may not read, or whose data is no config."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self.hidden: list[str] = []
        self.broken: list[str] = []

    def below(self, path: str) -> list[str]:
        """Return the paths of all znodes right below ``path``."""
        return [f"{path}/{name}" for name in self._allowed(path, partial(self._session.children, path)) or ()]

    def configs_of(self, paths: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """Return what each znode sets; a znode without data sets nothing."""
        found: dict[str, Mapping[str, str]] = {}
        for start in range(0, len(paths), WINDOW):
            window = paths[start : start + WINDOW]
            pending = [self._session.client.get_async(path) for path in window]
            for path, result in zip(window, pending, strict=True):
                znode = self._allowed(path, partial(self._session.wait_for_znode, path, result))
                try:
                    if znode and (config := znodes.decode_config(path, znode.data)):
                        found[path] = config
                except UndecodableZnodeError as error:
                    self.broken.append(str(error).partition(";")[0])
        return found

    def _allowed(self, path: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ClusterError as error:
            if not isinstance(error.__cause__, NoAuthError):
                raise
            self.hidden.append(printable(path))
            return None


def _not_numbers(quotas: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield bad quotas. Source: kafka.server.ZkAdminManager#clientQuotaPropsToDoubleMap, which raises for them."""
    for path, found in quotas.items():
        for name in sorted(found.keys() - SCRAM):
            try:
                float(found[name])
            except ValueError:
                yield printable(f"{path}: {name} is {found[name]}, which is no number")
