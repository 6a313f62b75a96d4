"""What is left for the page of a run whose files are not valid."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.simulated import Simulated
from topicops.flow import single_steps
from topicops.flow.runs.files import diagnostics_named
from topicops.flow.runs.run import DIAGNOSTICS_FILE
from topicops.model.errors import SpecError
from topicops.model.specs.diagnostics import Diagnostic, Severity


def test_a_validate_that_fails_leaves_what_it_found_and_the_next_one_takes_it_away(simulated: Simulated) -> None:
    simulated.workspace.write_environment()
    simulated.workspace.topic("orders", partitions="six")
    run = simulated.opened("1")
    with pytest.raises(SpecError):
        single_steps.validate(run)
    (found,) = run.store.read_value(DIAGNOSTICS_FILE, tuple[Diagnostic, ...])
    assert found.file.endswith("topics/tests/orders.yaml")
    assert "six" in found.summary
    simulated.workspace.topic("orders", partitions=6)
    single_steps.validate(run)
    assert not run.store.has(DIAGNOSTICS_FILE)


def test_files_of_a_bundle_are_named_as_in_their_repository(tmp_path: Path) -> None:
    topics = tmp_path / "versions" / "topics"
    topics.mkdir(parents=True)
    (tmp_path / "versions" / ".git").mkdir()
    read = os.path.relpath(topics)
    found = Diagnostic(
        code="TOP101", severity=Severity.ERROR, file=f"{read}/a.yaml", line=1, column=1, end_line=1, end_column=2,
        summary=f"orders is defined in {read}/b.yaml too",
    )  # fmt: skip
    (named,) = diagnostics_named(topics, (found,))
    assert (named.file, named.summary) == ("topics/a.yaml", "orders is defined in topics/b.yaml too")
    assert [each.file for each in diagnostics_named(Path("topics"), (replace(found, file="topics/a.yaml"),))] == [
        "topics/a.yaml"
    ]
