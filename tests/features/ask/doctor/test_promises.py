"""A new rule of doctor is one line in ``RULES``: its finding is printed without another change."""

import json
from collections.abc import Iterator

import pytest

from fakes.builders import environment, live_topic, snapshot
from topicops.features.ask.doctor import rules
from topicops.features.ask.doctor.commands import doctor_text
from topicops.features.ask.doctor.findings import NOTICE, Finding, Rule, Rules, found
from topicops.features.ask.doctor.rules import RULES, examine
from topicops.features.ask.doctor.values import DoctorFacts
from topicops.model.json_types import json_text


def topics_have_short_names(facts: DoctorFacts) -> Iterator[Finding]:
    return found(NOTICE, "long names:", (n for n in Rules(facts).live.topics if len(n) > 5), "shorten them")


def test_a_new_rule_is_seen_in_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES", (*RULES, Rule("long-names", topics_have_short_names)))
    facts = DoctorFacts(environment=environment(), snapshot=snapshot(live_topic("orders")))

    report = examine(facts)

    assert "notice [long-names]: long names: orders; fix: shorten them" in doctor_text(report)
    places = {finding["id"]: finding["places"] for finding in json.loads(json_text(report))["findings"]}
    assert places["long-names"] == ["orders"]
