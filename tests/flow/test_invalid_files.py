"""What is left for the page of a run whose files are not valid."""

from __future__ import annotations

import pytest

from fixtures.simulated import Simulated
from topicops import flow
from topicops.flow.runs.run import DIAGNOSTICS_FILE
from topicops.model.errors import SpecError
from topicops.model.specs.diagnostics import Diagnostic


def test_a_validate_that_fails_leaves_what_it_found_and_the_next_one_takes_it_away(simulated: Simulated) -> None:
    simulated.workspace.write_environment()
    simulated.workspace.topic("orders", partitions="six")
    run = simulated.opened("1")
    with pytest.raises(SpecError):
        flow.validate(run)
    (found,) = run.store.read_value(DIAGNOSTICS_FILE, tuple[Diagnostic, ...])
    assert found.file.endswith("topics/tests/orders.yaml")
    assert "six" in found.summary
    simulated.workspace.topic("orders", partitions=6)
    flow.validate(run)
    assert not run.store.has(DIAGNOSTICS_FILE)
