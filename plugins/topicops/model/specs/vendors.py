"""Vendors of Kafka services, as ``vendor_configs.json`` has them: their addresses, and topic configs of their own.

Taken from public pages; nothing was tried on a real service. A name with a vendor's prefix that is not in the table is
a config of the vendor too: only its brokers know whether it exists, and they judge each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import msgspec


class Vendor(msgspec.Struct, frozen=True):
    vendor: str
    """Name of the vendor."""
    hosts: tuple[str, ...]
    """Ends of the host names of its brokers; with a point at its end, a part of them."""
    prefixes: tuple[str, ...]
    """What names of its configs begin with."""
    configs: Mapping[str, str]
    """Kafka's type of each config whose type is known, by name."""


VENDORS = msgspec.json.decode(
    resources.files("topicops.model.specs").joinpath("vendor_configs.json").read_bytes(), type=tuple[Vendor, ...]
)


def vendor_of(config: str) -> Vendor | None:
    """Return whose config it is; None for Kafka's own, and for what nobody has."""
    return next((v for v in VENDORS if config in v.configs or (v.prefixes and config.startswith(v.prefixes))), None)


def vendor_at(servers: str) -> str:
    """Return the vendor of these bootstrap servers by their names; empty where the names tell none."""
    hosts = [server.strip().rpartition("://")[2].partition(":")[0].lower() for server in servers.split(",")]
    return next((v.vendor for v in VENDORS if any(_is_at(host, part) for part in v.hosts for host in hosts)), "")


def _is_at(host: str, part: str) -> bool:
    return part in host if part.endswith(".") else host.endswith(part)
