"""No command imports a package that it does not need."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.imports import LIVE, OFFLINE, WORDS, imported_by
from fixtures.workspace import Workspace
from topicops import cli


@pytest.fixture
def folder(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TOPICOPS_ENVIRONMENT", raising=False)
    workspace.write_environment()
    workspace.topic("clicks")
    return workspace.folder


@pytest.mark.slow
@pytest.mark.parametrize("line", OFFLINE)
def test_a_command_that_needs_no_cluster_imports_what_its_row_allows(line: str, folder: Path) -> None:
    _, imported = imported_by(line, folder)
    assert imported - OFFLINE[line] == set()
    assert OFFLINE[line] == set() or imported >= WORDS - {"shellingham", "annotated_doc"}, "it was no command at all"


def test_each_command_has_a_row() -> None:
    assert {line.split()[0] for line in (*OFFLINE, *LIVE)} == {*cli.COMMANDS, "--version", "--help", "plam"}
