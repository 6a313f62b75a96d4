"""A bad file of one environment stops that environment, and is a warning for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, topic, validated

PROD = LOCAL.replace("name: local", "name: prod")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        pytest.param("prod.yaml", PROD + "  limts: {}\n", "TOP201", id="an unknown field"),
        pytest.param("prod.yaml", "[", "TOP106", id="no YAML"),
        pytest.param("prod.yaml", PROD.replace("name: prod", "name: other"), "TOP117", id="another name"),
        pytest.param("prod eu.yaml", PROD, "TOP116", id="a name that no file may have"),
        pytest.param("prod.yml", PROD, "TOP118", id="another extension"),
        pytest.param("prod.exceptions.yaml", HEAD.format(kind="Topic", name="prod"), "TOP206", id="of its exceptions"),
    ],
)
def test_a_bad_file_of_another_environment_is_a_warning_that_names_it(file: str, text: str, code: str) -> None:
    files = {"environments/prod.yaml": PROD, "web/a.yaml": topic("a"), f"environments/{file}": text}
    if file == "prod.yml":
        del files["environments/prod.yaml"]

    for_local = validated(Path("topics"), files, environment="local")
    for_all = validated(Path("topics"), files, environment=None)

    found = [problem for problem in for_local.diagnostics if problem.code == code]
    assert found
    assert all(not problem.is_error for problem in for_local.diagnostics)
    assert all(f"environments/{file}" in problem.file and "alone" in problem.summary for problem in found)
    assert for_local.require()[1].topics.keys() == {"a"}
    assert for_all.has_errors


def test_a_bad_file_stops_its_own_environment() -> None:
    files = {"environments/prod.yaml": PROD + "  limts: {}\n", "web/a.yaml": topic("a")}

    assert validated(Path("topics"), files, environment="prod").has_errors


def test_an_error_of_a_topic_stops_every_environment() -> None:
    files = {"environments/prod.yaml": PROD, "web/a.yaml": topic("a", "spec: {partitions: few}\n")}

    assert validated(Path("topics"), files, environment="local").has_errors
