"""The hooks that this repository offers to pre-commit, and those that `topicops init` writes, run real commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import yaml

from topicops.cli import COMMANDS
from topicops.features.files.authoring.first_environment import FIRST_FILES, packaged

OFFERED = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
WRITTEN = yaml.safe_load(packaged(FIRST_FILES + "pre-commit-config.yaml"))["repos"][0]["hooks"]


def test_each_hook_runs_a_command_of_the_program() -> None:
    for hook in [*OFFERED, *WRITTEN]:
        program, command, *_ = shlex.split(hook["entry"])
        assert (program, command in COMMANDS) == ("topicops", True)


def test_both_lists_have_the_same_hooks() -> None:
    assert {hook["id"] for hook in OFFERED} == {hook["id"] for hook in WRITTEN} == {"topicops-validate", "topicops-fmt"}
