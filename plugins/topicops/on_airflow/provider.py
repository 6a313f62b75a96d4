"""The provider metadata, which Airflow reads first.

Airflow calls this in every process that it starts, so this module uses only constants. There is no section ``config``:
the settings ``TOPICOPS_*`` are read from the environment alone, in the shell as in Airflow.
"""

from __future__ import annotations

OURS = "topicops"
FOR_DAG_FILES = "topicops.on_airflow.for_dag_files"
CHROOT_PATTERN = "^(/[A-Za-z0-9._-]+)*$"


def provider_info() -> dict[str, object]:
    """Return the provider's metadata, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "topicops",
        "name": "topicops",
        "description": "Kafka topics as reviewed YAML, planned, applied and verified.",
        "integrations": [
            {"integration-name": OURS, "external-doc-url": "https://pypi.org/project/topicops/", "tags": ["software"]}
        ],
        "operators": _modules("topicops.on_airflow.dags.operators"),
        "sensors": _modules(FOR_DAG_FILES),
        "hooks": _modules("topicops.on_airflow.connections", FOR_DAG_FILES),
        "plugins": [{"name": OURS, "plugin-class": "topicops.on_airflow.plugin.TopicopsPlugin"}],
        "extra-links": [f"topicops.on_airflow.dags.operators.{link}" for link in ("PlanLink", "QualityLink")],
        "asset-uris": [{"schemes": [OURS], "handler": None, "factory": f"{FOR_DAG_FILES}.topic_asset"}],
        "connection-types": [_zookeeper()],
    }


def _modules(*names: str) -> list[dict[str, object]]:
    return [{"integration-name": OURS, "python-modules": [*names]}]


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
