"""A new source, lease or command is one file and one line in a list: each is added, and seen from YAML to output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from fixtures import pretended as pretended_file
from fixtures.pretended import open_lease, open_source
from fixtures.schemas.spec_files import schema_of
from fixtures.workspace import Workspace
from topicops import cli
from topicops.flow.runs.access import LEASES, READERS, Access
from topicops.model import choices

SANDBOX = {"class": "sandbox", "kafka": {"bootstrapServers": "127.0.0.1:1"}}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(choices.SOURCES, "pretended", "")
    monkeypatch.setitem(READERS, "pretended", open_source)
    return "pretended"


@pytest.fixture
def lease(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Access, "require_reachable_brokers", lambda *_: None)
    monkeypatch.setitem(choices.LEASES, "pretended", "")
    monkeypatch.setitem(LEASES, "pretended", open_lease)
    return "pretended"


@pytest.fixture
def pretended(workspace: Workspace, source: str) -> Workspace:
    workspace.cluster = {**SANDBOX, "source": source, "lease": "none"}
    workspace.topic("orders", partitions=3)
    workspace.write_environment()
    return workspace


def test_each_word_has_its_function() -> None:
    assert set(READERS) == set(choices.SOURCES)
    assert set(LEASES) == set(choices.LEASES)


def test_a_new_source_is_read_by_a_plan(pretended: Workspace) -> None:
    ended = pretended.run("plan", "--environment", "local", "--engine", "python", "--format", "json")

    assert ended.status == 0, ended.err
    plan = json.loads(ended.out)
    assert plan["target"]["cluster_id"] == "pretended-for-local"
    assert [change["topic"] for change in plan["changes"]] == ["orders"]


def test_a_new_lease_decides_whether_a_plan_is_applied(pretended: Workspace, lease: str) -> None:
    pretended.cluster["lease"] = lease
    pretended.write_environment()
    assert pretended.run("plan", "--environment", "local", "--engine", "python", "--out", "plan.json").status == 0

    ended = pretended.run("apply", "plan.json")

    assert ended.status == 5
    assert "apply all: the pretended lease is held, asked for by cli/" in ended.err


def test_a_word_that_no_list_holds_is_refused_with_those_that_are(pretended: Workspace) -> None:
    pretended.cluster["lease"] = "pretendet"
    pretended.write_environment()

    ended = pretended.run("validate", "topics")

    assert ended.status == 1
    assert "'pretendet' is not one of zookeeper, home, file, none" in ended.out


def test_the_schema_offers_what_the_lists_hold(source: str, lease: str) -> None:
    cluster = schema_of("environment")["$defs"]["Cluster"]["properties"]
    assert source in cluster["source"]["enum"]
    assert lease in cluster["lease"]["enum"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setitem(sys.modules, "topicops.cli.hello", pretended_file)
    for those in (cli.PANELS["Look"], cli.COMMANDS):
        monkeypatch.setitem(those, "hello", "hello:hello_command")
    cli._command.cache_clear()
    yield "hello"
    cli._command.cache_clear()


def test_a_new_command_is_run_and_listed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([command]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert cli.run(["--help"]) == 0
    assert command in capsys.readouterr().out
