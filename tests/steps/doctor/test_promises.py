"""A new rule of doctor is one function and one line in ``RULES``: its finding is printed without another change."""

import json
from collections.abc import Iterator

import pytest

from fakes.builders import environment, live_topic, snapshot
from topicops.model.cluster.doctor_facts import DoctorFacts, Finding, Severity
from topicops.model.specs.environment import Environment
from topicops.steps import doctor
from topicops.steps.doctor import RULES, examine
from topicops.steps.doctor.rule import Rule, live_of
from topicops.steps.reporting.cluster.doctor_text import doctor_json, doctor_text


def topics_have_short_names(facts: DoctorFacts, _: Environment) -> Iterator[Finding]:
    places = tuple(name for name in live_of(facts).topics if len(name) > 5)
    if places:
        yield Finding(Severity.NOTICE, "long names", "shorten them", places=places)


def test_a_new_rule_is_seen_in_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "RULES", (*RULES, Rule("long-names", ("snapshot",), topics_have_short_names)))
    facts = DoctorFacts(snapshot=snapshot(live_topic("orders")), zookeeper=None, kafka=None)

    report = examine(facts, environment())

    assert "notice [long-names]: long names; fix: shorten them" in doctor_text(report)
    found = {finding["id"]: finding["places"] for finding in json.loads(doctor_json(report))["findings"]}
    assert found["long-names"] == ["orders"]
