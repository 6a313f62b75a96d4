"""A terminal shows the warnings about its host once a day; other readers, and topicops -v, get them each time."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from fixtures.simulated import Simulated
from topicops.cli import output
from topicops.cli.output import DAY_S, not_told_today
from topicops.flow.runs.run import safety_notes
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec

UNSAFE = Environment(
    name="local", spec=EnvironmentSpec(cluster=Cluster(cluster_class="sandbox", lease="none")), file="local.yaml"
)
(OF_HOST,) = safety_notes(UNSAFE)
OTHER = "no broker gave its defaults"
LEASE = "the lease is a file"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)  # another test may have left it as `topicops -v` sets it
    monkeypatch.setattr(output, "is_terminal", lambda _: True)


def shown(home: Path) -> list[str]:
    return [*not_told_today((OF_HOST, OTHER), UNSAFE, home)]


@pytest.mark.usefixtures("terminal")
def test_a_warning_about_the_host_is_shown_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [shown(tmp_path), shown(tmp_path)] == [[OF_HOST, OTHER], [OTHER]]

    (stamp,) = (tmp_path / "told").iterdir()
    for age in (DAY_S + 1, -60):
        then = stamp.stat().st_mtime - age
        os.utime(stamp, (then, then))
        assert [shown(tmp_path), shown(tmp_path)] == [[OF_HOST, OTHER], [OTHER]]

    monkeypatch.setattr("socket.gethostname", lambda: "another")
    assert shown(tmp_path) == [OF_HOST, OTHER]


@pytest.mark.usefixtures("terminal")
def test_with_v_it_is_always_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shown(tmp_path)
    with caplog.at_level(logging.INFO):
        assert shown(tmp_path) == [OF_HOST, OTHER]


def test_where_nobody_looks_it_is_always_shown(tmp_path: Path) -> None:
    assert [shown(tmp_path), shown(tmp_path)] == [[OF_HOST, OTHER]] * 2


@pytest.mark.usefixtures("terminal")
def test_where_no_stamp_can_be_written_it_is_always_shown(tmp_path: Path) -> None:
    (tmp_path / "told").write_text("a file")
    assert [shown(tmp_path), shown(tmp_path)] == [[OF_HOST, OTHER]] * 2


@pytest.mark.usefixtures("terminal")
def test_plans_and_reports_do_not_repeat_it(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated.workspace.cluster["lease"] = "file"
    simulated.workspace.topic("shop.new")
    at_once = ("apply", "--environment", "local", "--yes")

    first, again = simulated.workspace.plan(), simulated.workspace.plan()
    in_full, applied = simulated.workspace.plan("-v"), simulated.workspace.run(*at_once)
    monkeypatch.setattr(output, "is_terminal", lambda _: False)
    piped = simulated.workspace.plan()

    assert applied.status == 0, applied.err
    assert [LEASE in ended.out for ended in (first, again, in_full, applied, piped)] == [True, False, True, False, True]
