"""The provider's metadata: in the form that the installed Airflow asks for, and nothing in it that is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module, resources
from typing import Any

import jsonschema
from airflow.sdk import Asset
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from topicops.on_airflow import topic_asset
from topicops.on_airflow.dags.operators import AskForApproval, AskPerson, PlanStep, QualityStep
from topicops.on_airflow.provider import provider_info

INFO: dict[str, Any] = provider_info()


def modules(kind: str) -> Iterator[Any]:
    for integration in INFO[kind]:
        assert integration["integration-name"] in {each["integration-name"] for each in INFO["integrations"]}
        yield from map(import_module, integration["python-modules"])


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def test_the_metadata_has_the_form_of_the_installed_airflow() -> None:
    schema = json.loads((resources.files("airflow") / "provider_info.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(INFO, schema)
    assert INFO.keys() <= schema["properties"].keys()


def test_hooks_sensors_and_operators_are_in_the_modules_that_are_named() -> None:
    hooks, sensors = [*modules("hooks")], [*modules("sensors")]
    assert any(hasattr(module, "ZooKeeperHook") for module in hooks)
    assert any(hasattr(module, "KafkaTopicsHook") for module in hooks)
    assert any(hasattr(module, "TopicHealthySensor") for module in sensors)
    assert all(
        hasattr(module, each.__name__) for module in modules("operators") for each in (AskForApproval, AskPerson)
    )


def test_every_button_of_a_task_is_declared() -> None:
    links = {type(link) for step in (PlanStep, QualityStep) for link in step.operator_extra_links}
    assert {named(path) for path in INFO["extra-links"]} == links


def test_the_plugin_that_is_declared_is_the_one_of_the_entry_point() -> None:
    (plugin,) = INFO["plugins"]
    assert (plugin["name"], named(plugin["plugin-class"]).name) == ("topicops", "topicops")


def test_airflow_makes_our_assets_by_what_is_declared_and_leaves_their_names_alone() -> None:
    (uris,) = INFO["asset-uris"]
    assert named(uris["factory"]) is topic_asset
    manager = ProvidersManagerTaskRuntime()
    assert "topicops" in manager.asset_uri_handlers
    assert manager.asset_factories["topicops"](environment="prod_eu", topic="Shop.orders") == topic_asset(
        "prod_eu", "Shop.orders"
    )
    assert Asset("topicops://prod_eu/Shop.orders").uri == "topicops://prod_eu/Shop.orders"


def test_no_setting_is_declared_that_airflow_would_not_read_for_us() -> None:
    """``AIRFLOW__TOPICOPS__HOME`` and a section ``[topicops]`` do nothing: the settings are variables."""
    assert "config" not in INFO
