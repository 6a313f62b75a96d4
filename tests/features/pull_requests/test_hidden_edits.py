"""An edit of a topic's file that another line hides: which line, and in which environments that is worth a word."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.spec_folder import LOCAL, PROD, topic, write, write_files
from fixtures.workflow import commit, git
from topicops.features.pull_requests.branches import open_branches
from topicops.features.pull_requests.hidden_edits import hidden_edits

FILE, OF_PROD = "topics/shop/orders.yaml", "topics/environments/prod.yaml"
OPERATORS = {
    "environments/prod.yaml": PROD["environments/prod.yaml"]
    + "  overrides: {orders: {partitions: 12, configs: {retention.ms: 30d}}}\n"
}
HERE_ALONE = ", environments: [prod]"
SPEC = "spec:\n  partitions: 6\n  configs: {retention.ms: 7d}\n"
OWN = "  overrides:\n    prod:\n      configs: {retention.ms: 3d}\n"


def found(
    folder: Path, before: str, after: str, environments: Mapping[str, str], *, metadata: str = ""
) -> dict[str, str]:
    topics = folder / "topics"
    write(topics, {**environments, "shop/orders.yaml": topic("orders", before, metadata=metadata)}, local=LOCAL)
    git(folder, "init", "-q")
    commit(folder, "main")
    write_files(topics, {"shop/orders.yaml": topic("orders", after, metadata=metadata)})
    commit(folder, "edit")
    with open_branches(topics, base="HEAD~1", head="HEAD") as branches:
        wanted = {name: branches.desired(branches.after, name) for name in branches.environments}
        return hidden_edits(branches, {name: desired for name, desired in wanted.items() if desired})


@pytest.mark.parametrize(
    ("before", "after", "environments", "metadata", "said"),
    [
        pytest.param(
            SPEC,
            SPEC.replace("6", "9").replace("7d", "1d"),
            OPERATORS,
            HERE_ALONE,
            f"2 edits without effect in prod: partitions in {FILE}:5 ({OF_PROD}:9 sets it), "
            f"retention.ms in {FILE}:6 ({OF_PROD}:9 sets it).",
            id="overrides of the environment",
        ),
        pytest.param(
            SPEC,
            SPEC.replace("6", "9"),
            OPERATORS,
            "",
            f"1 edit without effect in prod: partitions in {FILE}:5 ({OF_PROD}:9 sets it).",
            id="overrides of one of two environments",
        ),
        pytest.param(
            SPEC + OWN,
            SPEC.replace("7d", "1d") + OWN,
            PROD,
            HERE_ALONE,
            f"1 edit without effect in prod: retention.ms in {FILE}:6 ({FILE}:9 sets it).",
            id="the topic's own override, and no other environment",
        ),
        pytest.param(SPEC + OWN, SPEC.replace("7d", "1d") + OWN, PROD, "", "", id="the topic's own, which is meant"),
        pytest.param(
            SPEC + OWN,
            SPEC + OWN.replace("3d", "4d"),
            OPERATORS,
            "",
            f"1 edit without effect in prod: retention.ms in {FILE}:9 ({OF_PROD}:9 sets it).",
            id="an override that another one hides",
        ),
        pytest.param(
            "spec: {}\n",
            SPEC.replace("  partitions: 6\n", ""),
            OPERATORS,
            HERE_ALONE,
            f"1 edit without effect in prod: retention.ms in {FILE}:5 ({OF_PROD}:9 sets it).",
            id="a value that is new in the file",
        ),
        pytest.param(SPEC, SPEC.replace("6", "9"), PROD, "", "", id="an edit that counts"),
        pytest.param(SPEC + OWN, SPEC + OWN.replace("3d", "4d"), PROD, "", "", id="an override that counts"),
        pytest.param(SPEC, "spec:\n" + SPEC[5:].replace("\n", "\n\n"), OPERATORS, "", "", id="lines that move"),
        pytest.param(SPEC, "spec: {partitions: none}\n", OPERATORS, "", "", id="a file with errors"),
        pytest.param(SPEC, "not: [yaml\n", OPERATORS, "", "", id="a file that cannot be read"),
    ],
)
def test_what_is_said_of_an_edit(
    tmp_path: Path, before: str, after: str, environments: Mapping[str, str], metadata: str, said: str
) -> None:
    assert found(tmp_path, before, after, environments, metadata=metadata) == ({"prod": said} if said else {})


def test_of_many_edits_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    names = [f"orders{number:03}" for number in range(300)]
    overrides = "".join(f"    {name}: {{partitions: 12}}\n" for name in names)
    local = f"{LOCAL}  overrides:\n{overrides}"
    write(tmp_path / "topics", {f"shop/{name}.yaml": topic(name, SPEC) for name in names}, local=local)
    git(tmp_path, "init", "-q")
    commit(tmp_path, "main")
    write_files(tmp_path / "topics", {f"shop/{n}.yaml": topic(n, SPEC.replace("6", "9")) for n in names})
    commit(tmp_path, "edit")
    with open_branches(tmp_path / "topics", base="HEAD~1", head="HEAD") as branches:
        desired = branches.desired(branches.after, "local")
        assert desired
        [said] = hidden_edits(branches, {"local": desired}).values()
    assert said.startswith("300 edits without effect in local: partitions in topics/shop/orders000.yaml:5 ")
    assert said.endswith(" more.")
    assert len(said) < 500
