"""Edits are proposed where they help, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, configs, diagnostics, is_mended, proposes_an_edit, topic, tried, write

STRICT = LOCAL + "  policy: {minReplicationFactor: 2}\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SURE = [
    pytest.param({"web/a.yaml": topic("a", "spec: {replicas: 3}\n")}, id="a word of another tool"),
    pytest.param({"web/a.yaml": topic("a", "spec: {keyed: No}\n")}, id="a word of YAML 1.1"),
    pytest.param({"web/a.yaml": topic("a", "spec: {partitions: 012}\n")}, id="a leading zero"),
    pytest.param({"web/a.yaml": configs("retention.ms: 7 days")}, id="a unit of people"),
    pytest.param({"web/a.yml": topic("a")}, id="another extension"),
    pytest.param({"web/a.yaml": topic("a").replace("team", "te\u200bam")}, id="an invisible character"),
    pytest.param({"web/a.yaml": topic("a", "spec:\n\tpartitions: 3\n")}, id="a tab"),
    pytest.param({"web/a.yaml": topic("a").replace("owner", "ownr")}, id="a field and the one that is missing"),
    pytest.param(
        {"profiles/p.yaml": HEAD.format(kind="Profile", name="p") + "  partition: 3\n", "web/a.yaml": topic("a")},
        id="a file that others share",
    ),
]


@pytest.mark.parametrize("files", SURE)
def test_an_edit_that_helps_is_proposed_and_mends_the_file(files: dict[str, str]) -> None:
    write(Path(), files, local=STRICT)

    (problem,) = (problem for problem in diagnostics(Path()) if proposes_an_edit(problem))

    assert is_mended(Path(), problem)


UNSURE = [
    pytest.param({"web/a.yaml": topic("a", "spec: {partitions: 1_000}\n")}, id="a number above the limit"),
    pytest.param({"web/a.yaml": topic("a", "spec: {replicas: 1}\n")}, id="a field whose value is too low here"),
    pytest.param({"web/a.yaml": configs("min.insync.replicas: 010")}, id="a value that another value forbids"),
    pytest.param(
        {"web/a.yaml": configs("cleanup.policy: Compact", "keyed: false, ")}, id="a word that another forbids"
    ),
    pytest.param({"web/a.yml": topic("b")}, id="a name that the file does not have"),
    pytest.param({"a.yml": topic("a")}, id="a file that is in no domain"),
    pytest.param({"web/a.yml": topic("a", "spec: {partitions: few}\n")}, id="a file with another problem inside"),
    pytest.param({"web/a.yaml": topic("a").replace("name: a", "topic: b")}, id="a name that is not the file's"),
    pytest.param(
        {"web/a.b.yaml": topic("a.b"), "web/a_b.yaml": topic("a_b").replace("name: a_b", "topic: a_b")},
        id="a name that clashes",
    ),
    pytest.param({"web/a.yaml": topic("a").replace("team", "t\u200be\u200bam")}, id="two invisible characters"),
    pytest.param(
        {
            "profiles/q.yaml": HEAD.format(kind="Profile", name="q") + "  partitions: 25\n",
            "web/a.yaml": topic("a", "spec: {profile: qq}\n"),
        },
        id="a profile that does not fit here",
    ),
]


@pytest.mark.parametrize("files", UNSURE)
def test_an_edit_that_would_bring_an_error_is_not_proposed(files: dict[str, str]) -> None:
    write(Path(), files, local=STRICT)

    found = diagnostics(Path())

    assert any(problem.is_error for problem in found)
    assert [problem.fix or problem.rename_to for problem in found if proposes_an_edit(problem)] == []


def test_trying_ends_where_it_would_take_long_and_says_so() -> None:
    write(Path(), {f"web/t{number:02}.yaml": topic(f"t{number:02}", "spec: {keyed: No}\n") for number in range(60)})

    some = tried(Path(), most_nodes=0)
    proposed = [proposes_an_edit(problem) for problem in some.diagnostics]

    assert 10 < sum(proposed) < 60
    assert proposed == sorted(proposed, reverse=True)
    assert some.untried == 60 - sum(proposed)
    assert tried(Path()).untried == 0
