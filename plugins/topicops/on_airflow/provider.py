"""The provider metadata, which Airflow reads first: the connection type for ZooKeeper.

Airflow calls this in every process that it starts, so this module uses only constants.
"""

from __future__ import annotations

from topicops import __version__

CHROOT_PATTERN = "^(/[A-Za-z0-9._-]+)*$"


def provider_info() -> dict[str, object]:
    """Return the provider's metadata, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "topicops",
        "name": "topicops",
        "description": "Kafka topics as reviewed YAML, planned, applied and verified.",
        "versions": [__version__],
        "connection-types": [_zookeeper()],
    }


def _zookeeper() -> dict[str, object]:
    """Give the form of a ZooKeeper connection; the API server draws it without importing the hook."""
    return {
        "connection-type": "zookeeper",
        "hook-class-name": "topicops.on_airflow.connections.ZooKeeperHook",
        "hook-name": "ZooKeeper",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "port"],
            "relabeling": {"host": "Hosts"},
            "placeholders": {"host": "zk1:2181,zk2:2181,zk3:2181"},
        },
        "conn-fields": {
            "chroot": {
                "label": "Chroot",
                "description": "The znode below which Kafka lives, as in zookeeper.connect; empty for the root.",
                "schema": {"type": ["string", "null"], "pattern": CHROOT_PATTERN},
            },
            "tls": {
                "label": "TLS",
                "description": "The servers' certificate chain and host name are always checked.",
                "schema": {"type": ["boolean", "null"]},
            },
            "ca_file": _text_field("CA file", "PEM file on the workers; empty for the system's authorities."),
            "certificate_file": _text_field("Certificate file", "Our own, for servers that want one; PEM."),
            "key_file": _text_field("Key file", "The certificate's private key; PEM."),
            "key_password": _text_field("Key password", "Of an encrypted key file.", format="password"),
        },
    }


def _text_field(label: str, description: str, **schema: str) -> dict[str, object]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}
