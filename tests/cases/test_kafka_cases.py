"""Kafka's own cases, transcribed from its tests or computed by its classes, and who answers each section here.

A section has an adapter, which asks our product in the table's words, or a sentence: later, or out. A case that we
answer otherwise on purpose stands in ``OTHERWISE`` with its reason, and must then really be answered otherwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fixtures.kafka_answers import command, configs, controller, creation, health, placement, requests, znodes
from fixtures.kafka_answers.answer import Adapter, Case
from topicops.edges.zookeeper.znodes import (
    decode_broker,
    decode_config,
    decode_controller,
    decode_feature,
    decode_migration,
    decode_state,
    decode_topic,
)

TABLE = Path(os.environ.get("TOPICOPS_KAFKA_CASES") or Path(__file__).parents[1] / "data" / "kafka-test-cases.json")
SECTIONS: list[Any] = json.loads(TABLE.read_text(encoding="utf-8"))["sections"]

ANSWERS: dict[str, Adapter | str] = {
    "rack-alternated-list": placement.rack_list,
    "run-rack-list": placement.rack_list,
    "assign-exact": placement.rows_or_error,
    "assign-errors": placement.rows_or_error,
    "run-assign": placement.rows_or_error,
    "assign-properties": placement.spread,
    "expand-properties": placement.spread_after_expansion,
    "expand": placement.expansion,
    "run-expand": placement.expansion,
    "rack-modes": placement.rack_mode,
    "create-manual": creation.manual_creation,
    "create-existing": creation.creation_beside,
    "run-create-check": creation.creation_check,
    "command-create": command.command,
    "topic-names": creation.name_is_legal,
    "run-topic-name": creation.name_properties,
    "topic-collision-chars": creation.collision_form,
    "topic-collisions": configs.collision,
    "run-topic-collision": configs.collision,
    "replica-assignment-text": creation.assignment_text,
    "config-invalid-values": configs.single_value,
    "run-config-parsing": configs.single_value,
    "config-throttled-replicas": configs.throttled_replicas,
    "config-cross-checks": configs.together,
    "run-config": configs.together,
    "config-derived": configs.derived,
    "broker-znode": znodes.decoded_by(decode_broker),
    "run-broker-znode": znodes.decoded_by(decode_broker),
    "run-topic-znode": znodes.decoded_by(decode_topic),
    "run-state-znode": znodes.decoded_by(decode_state),
    "run-config-znode": znodes.decoded_by(decode_config),
    "run-controller-znode": znodes.decoded_by(decode_controller),
    "run-migration-znode": znodes.decoded_by(decode_migration),
    "other-znodes": znodes.other,
    "run-feature-znode": znodes.decoded_by(decode_feature),
    "health-filters": health.health,
    "create-request": requests.create_request,
    "create-policy": requests.create_policy,
    "mutation-quota": requests.mutation_quota,
    "deletion-scenarios": controller.deletion_scenario,
    "observable-state": controller.observable_state,
    "kraft-validation": requests.kraft_validation,
    "deletion-manager": controller.deletion_manager,
    "leader-election": controller.election,
    "run-leader-election": controller.election,
    "run-partition-transitions": controller.partition_transition,
    "run-replica-transitions": controller.replica_transition,
    "reassignment-model": controller.reassignment,
    "run-reassign": controller.reassignment,
}


class Otherwise(NamedTuple):
    """Cases of a section that we answer otherwise than Kafka, and why."""

    sections: tuple[str, ...]
    holds: Callable[[Case], bool]
    reason: str


CROSS_CHECKS = ("config-cross-checks", "run-config")
OTHERWISE: tuple[Otherwise, ...] = (
    Otherwise(
        CROSS_CHECKS,
        lambda case: tiers(case) and not case["remote_storage_system_enabled"],
        "decided by the broker: whether it has remote storage stands in no file; its validate-only answer refuses it",
    ),
    Otherwise(
        CROSS_CHECKS,
        lambda case: case["config"].get("remote.storage.enable") == "false" and tiers(case, "existing_config"),
        "decided by the broker: a file does not know what is live",
    ),
    Otherwise(
        ("run-topic-name",),
        lambda case: not case["internal"] and case["name"].startswith("__"),
        "stricter: whatever begins with two underscores is protected",
    ),
    Otherwise(("run-create-check",), creation.is_lax, "stricter: each id, row and broker of an assignment is checked"),
    Otherwise(
        ("run-create-check",),
        lambda case: case["topic"].startswith("__") and "ok" in case["expect"],
        "stricter: whatever begins with two underscores is protected",
    ),
    Otherwise(
        ("run-create-check",),
        lambda case: "generated_consecutive_partitions" in case["assignment"] and "error" in case["expect"],
        "out, because Kafka's sum of ids overflows there; limits.partitionsPerTopic ends far below",
    ),
    Otherwise(
        ("rack-modes",),
        lambda case: case["mode"] == "safe",
        "stricter: nobody falls back to a placement without racks unasked; the plan blocks (TOP434)",
    ),
    Otherwise(
        ("command-create",),
        lambda case: bool({"alter_missing", "delete_missing"} & case["request"].keys()),
        "declarative: what a file describes is created, and what a tombstone names may be gone already",
    ),
    Otherwise(
        ("command-create",),
        lambda case: str(case["request"].get("delete", "")).startswith("__"),
        "stricter: whatever begins with two underscores is protected",
    ),
    Otherwise(
        ("kraft-validation",),
        lambda case: "isr" in str(case["expect"]),
        "stricter: a plan places no replica on a broker that is not live",
    ),
    Otherwise(
        ("deletion-scenarios",),
        lambda case: any("request version 2" in step for step in case["steps"]),
        "out, because no request of ours has so old a version: brokers answer a newer one with 73",
    ),
    Otherwise(
        ("other-znodes",),
        lambda case: case["znode"] in ("/admin/delete_topics/<t>", "/controller"),
        "out, because the tool writes neither: Kafka's controller does",
    ),
    Otherwise(
        ("run-topic-znode", "run-config-znode"),
        znodes.is_forgiven,
        "stricter: what Kafka forgives, and a version that nobody knows, is an error; a plan could not stand on it",
    ),
)


def tiers(case: Case, part: str = "config") -> bool:
    return bool(case.get(part, {}).get("remote.storage.enable") == "true")


def reason_to_differ(section: str, case: Case) -> str | None:
    return next((row.reason for row in OTHERWISE if section in row.sections and row.holds(case)), None)


def answered_cases() -> list[Any]:
    return [
        pytest.param(section["id"], case, id=f"{section['id']}-{index}")
        for section in SECTIONS
        if callable(ANSWERS.get(section["id"]))
        for index, case in enumerate(section["cases"])
    ]


@pytest.mark.parametrize(("section", "case"), answered_cases())
def test_our_answer_is_kafkas_or_differs_for_a_reason(
    section: str, case: Case, record_property: Callable[[str, object], None]
) -> None:
    adapter = ANSWERS[section]
    assert callable(adapter)
    answer = adapter(case)
    reason = reason_to_differ(section, case)
    record_property("section", section)
    record_property("answer", "as Kafka" if reason is None else f"otherwise ({reason})")
    if reason is None:
        assert answer.ours == answer.kafkas
    else:
        assert answer.ours != answer.kafkas, f"take the row out of OTHERWISE, or narrow it: {reason}"


def test_every_section_of_the_table_is_in_the_map_and_no_other() -> None:
    assert sorted(ANSWERS) == sorted(section["id"] for section in SECTIONS)


def test_a_section_without_an_adapter_says_why() -> None:
    reasons = [answer for answer in ANSWERS.values() if isinstance(answer, str)]
    assert [reason for reason in reasons if not reason.startswith(("later: ", "out, because "))] == []
