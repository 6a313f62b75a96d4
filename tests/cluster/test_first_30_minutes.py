"""The page "The first 30 minutes", typed line by line into a shell in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from topicops.edges.local.cluster import LocalCluster

PAGE = Path(__file__).parents[2] / "docs" / "first-30-minutes.md"
EDIT = ("partitions: 3", "partitions: 6\n  configs:\n    retention.ms: 3d")
"""What the page asks the reader to do with an editor, before the third section's commands."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    cluster = LocalCluster.find(tmp_path / ".topicops")
    if cluster is not None:
        cluster.down(now=True)


def sections() -> Mapping[str, list[str]]:
    """The commands below each heading; blocks of another language are no commands."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.splitlines()[0]: list(_commands(part)) for part in parts}


def _commands(part: str) -> Iterator[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return (line for language, block in fences if not language for line in block.splitlines())


def shell(folder: Path) -> Callable[[str], str]:
    """Types a line; it must succeed. ``FINGERPRINT`` is that of the plan that was written last."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("TOPICOPS_", "AIRFLOW_"))}
    environment |= {
        f"GIT_{who}_{what}": "me@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def type_line(line: str) -> str:
        if "FINGERPRINT" in line:
            line = line.replace("FINGERPRINT", json.loads((folder / "plan.json").read_text())["fingerprint"])
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return type_line


@pytest.mark.soak
def test_every_command_of_the_page_works_and_does_what_the_page_says(folder: Path) -> None:
    found, type_line = sections(), shell(folder)
    setup, first, change, history, delete, end = found.values()
    for line in (*setup, *first):
        said = type_line(line)
    assert said == ""  # the commit's

    file = folder / "topics" / "shop" / "shop.orders.yaml"
    file.write_text(file.read_text().replace(*EDIT))
    plan, apply, commit = change
    held = type_line(plan)
    assert "held" in held
    assert "risky" in held
    assert "Applied and verified" in type_line(apply)
    whole = file.read_text()
    file.write_text(whole.replace("partitions: 6", "partitions: 2"))
    assert "TOP401" in type_line(plan)
    file.write_text(whole)
    type_line(commit)

    assert all("shop.orders" in type_line(line) for line in history[:1])
    assert all(type_line(line) for line in history[1:])

    file.unlink()
    assert "1 unmanaged" in type_line("topicops plan")
    for line in delete:
        said = type_line(line)
    assert "Applied and verified" in said
    assert [shlex.split(line)[:3] for line in end] == [["topicops", "local", "down"]]
    assert "Stopped" in type_line(end[0])
