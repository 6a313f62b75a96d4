"""The mistakes that people make first: each is named at its place, with a way out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, owners, topic, validated

DATA = Path(__file__).parents[2] / "data/mistakes.json"
MISTAKES = json.loads(DATA.read_text(encoding="utf-8"))
AROUND = {
    "owners.yaml": owners("owner: team-web, partitions: 1000"),
    "profiles/durable.yaml": HEAD.format(kind="Profile", name="durable") + "  partitions: 3\n",
}
RULE = "  policy: {rules: [{match: {names: a}, configs: {retention.ms: {max: 30d}}}], exceptions: [%s]}\n"


@pytest.mark.parametrize("row", [pytest.param(row, id=row["mistake"]) for row in MISTAKES])
def test_a_mistake_is_named_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Mapping[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    local = LOCAL.replace("sandbox", 'sandbox, kafkaVersion: "3.9"')

    found = validated(Path(), {**AROUND, "web/a.yaml": row["text"]}, local=local).diagnostics

    [said] = [each for each in found if each.file == "web/a.yaml"]
    assert said.help
    assert (said.code, said.line, said.column) == (row["code"], row["line"], row["column"])
    assert (said.summary, said.help) == (row["says"], row["help"])


@pytest.mark.parametrize(("config", "code"), [("31d", "TOP340"), ("31 days", "TOP214")])
def test_an_exception_lifts_a_rule_and_no_value_that_cannot_be_read(tmp_path: Path, config: str, code: str) -> None:
    files = {"web/a.yaml": topic("a", f"spec: {{configs: {{retention.ms: {config}}}}}\n")}
    for exception, is_error in (("", True), ("{topic: a, code: TOP340, reason: r}", code != "TOP340")):
        found = validated(tmp_path, files, local=LOCAL + RULE % exception)
        assert [(each.code, each.is_error) for each in found.diagnostics] == [(code, is_error)]
        assert found.has_errors is is_error
