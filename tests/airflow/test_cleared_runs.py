"""A run that is cleared after others have run: it reads all anew, or sends nothing and says what overtook it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from fixtures.scripted_flow import CREATE, DELETE, ScriptedFlow, ScriptedRun, ScriptedTask, context, digest, site
from topicops.flow.runs.memory import read_held
from topicops.on_airflow.site import Site
from topicops.on_airflow.tasks import changes, planning
from topicops.on_airflow.tasks.opening import XComValue

A_DAY = timedelta(days=1)
YESTERDAY = ScriptedTask(run_id="scheduled__1")
TODAY = ScriptedTask(run_id="scheduled__2", dag_run=ScriptedRun(run_after=ScriptedRun.run_after + A_DAY))
VALIDATED = {"path": "desired.json", "topics": 3}
"""What the scripted flow gives for its files."""
CLEARED = ScriptedTask(run_id="scheduled__1", dag_run=ScriptedRun(clear_number=1))


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(planning.validate, id="the whole run"),
        pytest.param(planning.gate, id="from the gate on"),
        pytest.param(partial(changes.pipeline_change, "create"), id="one kind of changes"),
        pytest.param(partial(changes.pipeline_change, "delete"), id="deletes"),
    ],
)
def test_a_cleared_run_that_a_later_one_overtook_sends_nothing_and_names_it(
    tmp_path: Path, step: Callable[[Site, object], XComValue]
) -> None:
    planning.gate(site(ScriptedFlow(tmp_path, changes=(CREATE,))), context(YESTERDAY))
    planning.gate(site(ScriptedFlow(tmp_path, changes=(DELETE,))), context(TODAY))
    stale = ScriptedFlow(tmp_path, changes=(CREATE,))

    with pytest.raises(AirflowFailException, match="topic_pipeline_local/scheduled__2 has planned since"):
        step(site(stale), context(CLEARED))

    assert stale.sent == []
    assert set(read_held(tmp_path, "local").addresses) == {digest(DELETE)}


def test_a_cleared_run_that_is_the_newest_runs_again(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    planning.gate(site(flow), context(YESTERDAY))

    planning.validate(site(flow), context(CLEARED))
    planning.gate(site(flow), context(CLEARED))
    changes.pipeline_change("create", site(flow), context(CLEARED))

    assert flow.sent == [("create", frozenset())]


def test_a_cleared_run_may_look_although_a_later_one_has_planned(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    planning.gate(site(flow), context(TODAY))

    assert planning.validate(site(flow), context(CLEARED, mode="plan")) == VALIDATED
    assert "fingerprint" in planning.gate(site(flow), context(CLEARED, mode="plan"))


def test_a_run_that_nobody_cleared_runs_in_any_order(tmp_path: Path) -> None:
    flow = ScriptedFlow(tmp_path, changes=(CREATE,))
    planning.gate(site(flow), context(TODAY))

    planning.gate(site(flow), context(YESTERDAY))  # started late, with a time of the past
    changes.pipeline_change("create", site(flow), context(YESTERDAY))

    assert flow.sent == [("create", frozenset())]
    with pytest.raises(AirflowFailException, match="scheduled__2"):
        planning.gate(site(flow), context(CLEARED))
