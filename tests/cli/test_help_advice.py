"""What the help and the messages of the program tell people to type is typed, on a cluster in memory, and works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import typer

from fixtures.page_commands import ROOT, advised_spans
from fixtures.simulated import Simulated
from fixtures.workflow import commit, git
from topicops import cli

PAGES = "tests/cluster/test_pages_typed.py types it with a real one"
FORGE = "needs a forge: tests/cluster/test_pull_requests.py has one"
MOVES = "tests/features/moves/test_moves_command.py has one"
PLANS = "tests/features/moves/test_planned_commands.py has them"
AIRFLOW = "needs Airflow: tests/features/pull_requests/test_trigger.py has a stand-in"
NOT_TYPED = {
    "topicops doctor": f"asks each broker: {PAGES}",
    "topicops init": f"needs a cluster: {PAGES}",
    "topicops init --zookeeper *": f"needs a cluster: {PAGES}",
    "topicops local up": f"starts a cluster: {PAGES}",
    "topicops local up --kafka *": "starts a cluster: tests/versions/test_releases.py has each release",
    "topicops local up --broker-ports *": "starts a cluster: tests/fixtures/guarded_broker.py names a port",
    "topicops demo --kafka *": "starts a cluster and Airflow: .ci/run starts the demo",
    "topicops ci comment --repository *": FORGE,
    "topicops ci status --repository *": FORGE,
    "topicops ci report --repository *": FORGE,
    "topicops moves --cancel-all": f"needs a move that runs: {MOVES}",
    "topicops moves --throttle *": f"needs a move that runs: {MOVES}",
    "topicops rebalance --brokers *": f"needs brokers of these ids: {PLANS}",
    "topicops rebalance --bytes *": f"asks each broker: {PLANS}",
    "topicops ci trigger": AIRFLOW,
    "topicops ci trigger --repository *": AIRFLOW,
    "topicops ci trigger --wait-* *": AIRFLOW,
}
"""Lines that are only read here: why, and who does what they say."""
NO_COMMANDS = {
    *("topics", "<environment>.json", "<group>/<run id>"),
    *("cluster.draining", "policy.drainUnmanaged: allow"),
}
"""Code spans of the help that are files, folders, forms and fields."""
NO_VALUES = {
    *("1", "2", "8", "100,000"),
    *("topics/environments/", "topics/profiles/", "$TOPICOPS_ENVIRONMENT"),
    *("NAME=VALUE", "s3://", "hdfs://", "gs://"),
}
"""Words of the help with a digit or a sign that are no examples of values."""
FILLED = {
    "new TOPIC": "new fresh",
    "TOPIC": "bills",
    "OWNER": "team-tests",
    "TEXT": "Over.",
    "X X": "topicctl other",
    "X": "plan.json",
}
"""What stands here for the words in capitals."""
BEHIND = {
    "topicops apply": "plan.json",
    "topicops apply --lock-timeout *": "plan.json",
    "topicops audit topic --since *": "bills",
    "topicops ci plan": "--base HEAD~1 --head HEAD",
    "topicops new": "fresh --owner team-tests",
    "topicops new --*": "fresh --owner team-tests",
    "topicops plan --out": "plan.json",
    "topicops rehearse --step *": "plan.json --without-broker 2",
    "topicops retire --not-before *": "bills --reason Over.",
    "topicops retire 'tmp.*'": "--reason Over.",
}
"""What such lines leave to their reader."""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(cli.app), "topicops"))
HELP = [
    (path, parameter, text)
    for path, command in COMMANDS.items()
    for parameter, text in [(None, command.help), *((each, getattr(each, "help", None)) for each in command.params)]
    if text
]
"""Texts, each with the command that shows it, and with the option or argument that it is about."""


def spans_of_help() -> Iterator[str]:
    """Yield code spans; a command is written whole, also where the program or its group is left out."""
    for path, _, text in HELP:
        for span in re.findall(r"`([^`]+)`", text):
            words, groups = span.removeprefix("topicops "), ("topicops", path.rpartition(" ")[0])
            group = next((group for group in groups if f"{group} {words.split()[0]}" in COMMANDS), None)
            yield f"{group} {words}" if group else span


def values_of_help() -> Iterator[str]:
    """Yield a line for each example of a value."""
    for path, parameter, text in HELP:
        for word in re.findall(r"[^\s;()]*[\d=*/][^\s;()]*", _without_spans(text)):
            if parameter and (value := word.strip("'.:,")) not in NO_VALUES:
                option = f"{parameter.opts[0]} " if parameter.param_type_name == "option" else ""
                yield f"{path} {option}{shlex.quote(value)}"


def _without_spans(text: str) -> str:
    return re.sub(r"`[^`]*`", "", text)


LINES = sorted({*advised_spans(), *spans_of_help(), *values_of_help()} - NO_COMMANDS)


def entry_of(line: str, table: Mapping[str, str]) -> str | None:
    """Return the pattern of the table that the line fits."""
    return next((pattern for pattern in table if line == pattern or fnmatchcase(line, pattern)), None)


@pytest.fixture
def shop(simulated: Simulated) -> Simulated:
    """Yield a repository with two commits, a plan of what the second one adds, and a run that sent the first."""
    workspace = simulated.workspace
    workspace.topic("bills")
    workspace.topic("tmp.copy")
    Path("topics/owners.yaml").write_text(
        "apiVersion: topicops/v1\nkind: Owners\nmetadata: {name: owners}\n"
        'spec: {owners: [{owner: team-tests, topics: ["*"], reviewers: [alice]}]}\n'
    )
    Path("other").mkdir()
    Path("other/t.yaml").write_text("meta: {name: more.topics}\nspec: {partitions: 1, replicationFactor: 3}\n")
    git(Path(), "init", "-q")
    run = simulated.planned()
    commit(Path())
    simulated.apply(run)
    workspace.topic("orders")
    workspace.plan()
    commit(Path())
    return simulated


@pytest.mark.parametrize("line", [line for line in LINES if not entry_of(line, NOT_TYPED)])
def test_what_is_advised_can_be_typed_and_works(line: str, shop: Simulated) -> None:
    entry = entry_of(line, BEHIND)
    typed = f"{line} {BEHIND[entry]}" if entry else line
    for capitals, text in FILLED.items():
        typed = re.sub(rf"\b{capitals}\b(?!=)", text, typed)
    ended = shop.workspace.run(*shlex.split(typed)[1:])
    assert ended.status == 0, f"{typed}\n{ended.out}\n{ended.err}"


@pytest.mark.parametrize("line", [line for line in LINES if entry_of(line, NOT_TYPED)])
def test_what_cannot_be_typed_here_is_a_line_that_the_program_takes(line: str) -> None:
    path = max((path for path in COMMANDS if f"{line} ".startswith(f"{path} ")), key=len)
    assert COMMANDS[path].make_context(path, shlex.split(line.removeprefix(path)))


def test_what_the_tables_name_is_still_advised_and_their_reasons_are_true() -> None:
    for table in (NOT_TYPED, BEHIND):
        assert {entry_of(line, table) for line in LINES} - {None} == table.keys()
    assert {*spans_of_help()} >= NO_COMMANDS
    assert {word.strip("'.:,") for _, _, text in HELP for word in text.split()} >= NO_VALUES
    named = {path for reason in NOT_TYPED.values() for path in re.findall(r"[.\w]+/\S+", reason)}
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_each_option_that_a_help_names_is_one_of_its_command() -> None:
    texts = [(path, _without_spans(text)) for path, _, text in HELP]
    found = {(path, option) for path, text in texts for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert ("topicops import", "--from") in found
    known = {path: {option for each in command.params for option in each.opts} for path, command in COMMANDS.items()}
    assert {(path, option) for path, option in found if option not in known[path]} == set()
