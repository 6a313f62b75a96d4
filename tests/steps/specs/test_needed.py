"""Which problems stop a command that needs some topics only, and what the other problems leave out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, NOW, owners, topic, write
from topicops.edges.specs.reader import read_tree
from topicops.steps.planning.only import needs_of
from topicops.steps.specs.needed import left_out_line, no_topic
from topicops.steps.specs.validate import Validated, validate

GOOD = {
    "web/web.a.yaml": topic("web.a"),
    "web/web.b.yaml": topic("web.b", "spec: {profile: p}\n"),
    "pay/pay.a.yaml": topic("pay.a", "spec: {profile: q}\n"),
    "profiles/p.yaml": HEAD.format(kind="Profile", name="p") + "  partitions: 6\n",
    "profiles/q.yaml": HEAD.format(kind="Profile", name="q") + "  partitions: 6\n",
}
GARBAGE = "{"
OWNERS = owners("owner: team-web")


def judged(folder: Path, files: Mapping[str, str], only: str | None, *, local: str = LOCAL) -> Validated:
    write(folder, {**GOOD, **files}, local=local)
    return validate(read_tree(folder), environment="local", now=NOW, needs=needs_of(only) or no_topic)


OTHERS = [
    pytest.param({"pay/pay.b.yaml": GARBAGE}, {"pay.b"}, 1, id="no YAML"),
    pytest.param({"pay/pay.b.yaml": topic("pay.b", "spec: {partitions: many}\n")}, {"pay.b"}, 1, id="a bad value"),
    pytest.param({"pay/pay.b.yaml": topic("pay.b", "spec: {partitions: 99}\n")}, {"pay.b"}, 1, id="over a limit"),
    pytest.param({"pay/pay.b.yaml": topic("pay.c")}, {"pay.b", "pay.c"}, 1, id="another name than its file"),
    pytest.param({"pay/pay.b.yml": topic("pay.b")}, set(), 1, id="another extension"),
    pytest.param({"pay/deep/pay.b.yaml": topic("pay.b")}, set(), 1, id="too deep"),
    pytest.param({"pay/pay.b.yaml": topic("pay.b", "spec: {profile: no}\n")}, {"pay.b"}, 1, id="an unknown profile"),
    pytest.param({"profiles/q.yaml": GARBAGE}, {"pay.a"}, 1, id="a profile, and the topics that use it"),
    pytest.param({"profiles/q.yaml": GOOD["profiles/q.yaml"].replace("6", "x")}, {"pay.a"}, 1, id="a profile's value"),
    pytest.param({"other/pay.a.yaml": topic("pay.a")}, {"pay.a"}, 2, id="two files of one topic: both"),
    pytest.param({"pay/web_b.yaml": topic("web_b")}, {"web_b"}, 1, id="the later of two names that clash"),
]


@pytest.mark.parametrize(("files", "topics", "count"), OTHERS)
@pytest.mark.parametrize("only", [None, "web.*"])
def test_errors_of_other_topics_leave_these_out_and_stop_nothing(
    tmp_path: Path, files: dict[str, str], topics: set[str], count: int, only: str | None
) -> None:
    if "web_b" in topics:
        files = {"zzz/web_b.yaml": files["pay/web_b.yaml"]}
    _, desired = (found := judged(tmp_path, files, only)).require()

    assert desired.topics.keys() == {"web.a", "web.b", "pay.a"} - topics
    assert topics <= desired.left_out
    assert desired.left_out.isdisjoint(desired.topics)
    assert (len(found.left_out.files), found.has_errors) == (count, False)
    assert left_out_line(found.left_out).startswith(f"{count} file")


@pytest.mark.parametrize("only", [None, "web.*"])
def test_what_is_left_out_is_as_if_it_were_not_there(tmp_path: Path, only: str | None) -> None:
    without = judged(tmp_path / "without", {}, only).require()[1]
    found = judged(tmp_path / "with", {"pay/pay.b.yaml": topic("pay.b", "spec: {partitions: many}\n")}, only)

    assert found.require()[1].digest == without.digest
    assert found.diagnostics == ()
    assert left_out_line(found.left_out) == "1 file of other topics has errors; `topicops validate` lists them"


@pytest.mark.parametrize(
    ("files", "where"),
    [
        pytest.param({"web/web.a.yaml": GARBAGE}, "web/web.a.yaml", id="its file is no YAML"),
        pytest.param({"web/web.a.yaml": topic("web.a", "spec: {partitions: 99}\n")}, "web/web.a.yaml", id="a limit"),
        pytest.param({"web/web.c.yml": topic("web.c")}, "web/web.c.yml", id="another extension"),
        pytest.param({"web/x/web.c.yaml": topic("web.c")}, "web/x/web.c.yaml", id="too deep"),
        pytest.param({"pay/pay.c.yaml": topic("web.c")}, "pay/pay.c.yaml", id="the name of a needed topic elsewhere"),
        pytest.param({"pay/web.a.yaml": GARBAGE}, "pay/web.a.yaml", id="a second file of it"),
        pytest.param({"profiles/p.yaml": GARBAGE}, "profiles/p.yaml", id="its profile"),
        pytest.param({"owners.yaml": GARBAGE}, "owners.yaml", id="the owners"),
        pytest.param({"owners.yml": OWNERS}, "owners.yml", id="the owners, in a file that is not read"),
        pytest.param({"environments/local.exceptions.yaml": GARBAGE}, "local.exceptions.yaml", id="its exceptions"),
        pytest.param({"zzz/web_a.yaml": topic("web_a"), "aaa/web_c.yaml": topic("web_c"),
                      "web/web.c.yaml": topic("web.c")}, "web/web.c.yaml", id="it clashes with another"),
    ],
)  # fmt: skip
def test_errors_of_needed_topics_and_of_what_they_share_stop_the_command(
    tmp_path: Path, files: dict[str, str], where: str
) -> None:
    found = judged(tmp_path, files, "web.*")
    assert found.desired is None
    assert any(problem.is_error and problem.file.endswith(where) for problem in found.diagnostics)


def test_an_error_of_the_environment_stops_every_command(tmp_path: Path) -> None:
    assert judged(tmp_path, {}, None, local=LOCAL.replace("24", "many")).desired is None


def test_an_error_of_the_owners_stops_no_command_that_needs_no_topic(tmp_path: Path) -> None:
    assert judged(tmp_path, {"owners.yaml": GARBAGE}, None).require()[1].topics.keys() == {"web.a", "web.b", "pay.a"}


@pytest.mark.parametrize(("owner", "stops"), [("team-web", True), ("team-pay", False)])
def test_a_budget_stops_the_plan_of_its_own_owner_alone(tmp_path: Path, owner: str, stops: bool) -> None:
    both = owners("owner: team-web", "owner: team-pay").replace(f"owner: {owner}", f"owner: {owner}, partitions: 2")
    files = {"pay/pay.b.yaml": topic("pay.b").replace("team-web", "team-pay"), "owners.yaml": both}
    found = judged(tmp_path, files, "web.*")
    assert (found.desired is None) == stops
    if found.desired is not None:
        assert "pay.b" in found.desired.topics, "each file of its is valid"


def test_without_needs_every_error_stops(tmp_path: Path) -> None:
    write(tmp_path, {**GOOD, "pay/pay.b.yaml": GARBAGE})
    found = validate(read_tree(tmp_path), environment="local", now=NOW)
    assert (found.desired, found.left_out.files) == (None, frozenset())
