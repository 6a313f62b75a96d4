"""`topicops adopt`: the files take over what is live on a cluster in memory; all their other lines stay."""

from __future__ import annotations

import pytest

from fixtures.simulated import Simulated
from topicops.features.files.authoring.adopting import block_of

DAY = "86400000"
HEAD = "apiVersion: topicops/v1\nkind: Topic\nmetadata:\n  name: {name}\n  owner: team-tests\n"
BLOCK = "spec:  # as agreed\n  keyed: false\n  partitions: 3 # one a shop\n  configs:\n    # for the auditors\n"
MIN_ISR = "min.insync.replicas"


def write(simulated: Simulated, name: str, text: str, *, folder: str = "tests") -> None:
    path = simulated.workspace.folder / f"topics/{folder}/{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("apiVersion") else HEAD.format(name=name) + text, encoding="utf-8")


def spec_of(simulated: Simulated, name: str) -> str:
    return simulated.workspace.path_of(name).read_text().partition("team-tests\n")[2]


@pytest.mark.parametrize(
    ("spec", "partitions", "live", "adopted", "said"),
    [
        pytest.param(
            f"{BLOCK}    retention.ms: 7d # a week\n",
            3,
            {"retention.ms": DAY},
            f"{BLOCK}    retention.ms: 1d # a week\n",
            "retention.ms: 7d -> 1d",
            id="another value",
        ),
        pytest.param(
            "spec:\n  keyed: false\n  partitions: 3 # one a shop\n",
            5,
            {},
            "spec:\n  keyed: false\n  partitions: 5 # one a shop\n",
            "partitions: 3 -> 5",
            id="more partitions",
        ),
        pytest.param(
            "spec:\n  keyed: false\n", 4, {}, "spec:\n  keyed: false\n  partitions: 4\n", "partitions: 1 -> 4",
            id="more partitions than the default",
        ),
        pytest.param(
            "spec:\n  keyed: false\n",
            1,
            {"retention.ms": DAY},
            "spec:\n  keyed: false\n  configs:\n    retention.ms: 1d\n",
            "retention.ms: not set -> 1d",
            id="an override that no file names",
        ),
        pytest.param(
            f"{BLOCK}    retention.ms: 1d\n    segment.ms: 1h\n",
            3,
            {"segment.ms": "3600000"},
            f"{BLOCK}    segment.ms: 1h\n",
            "retention.ms: 1d -> not set",
            id="an override that is gone",
        ),
        pytest.param(
            f"{BLOCK}    retention.ms: 1d\n",
            3,
            {},
            "spec:  # as agreed\n  keyed: false\n  partitions: 3 # one a shop\n    # for the auditors\n",
            "retention.ms: 1d -> not set",
            id="the only override is gone",
        ),
        pytest.param(
            "spec:\n  keyed: false\n  profile: kept\n",
            1,
            {},
            "spec:\n  keyed: false\n  profile: kept\n  configs:\n    retention.ms: null\n",
            "retention.ms: 7d -> not set",
            id="an override of the profile is gone",
        ),
        pytest.param(
            "spec:\n  keyed: false\n  profile: kept\n  configs:\n    retention.ms: 1d\n",
            1,
            {},
            "spec:\n  keyed: false\n  profile: kept\n  configs:\n    retention.ms: null\n",
            "retention.ms: 1d -> not set",
            id="an own override above the profile's is gone",
        ),
        pytest.param(
            "spec: {keyed: false, partitions: 2}\n", 3, {}, "spec: {keyed: false, partitions: 3}\n",
            "partitions: 2 -> 3",
            id="a value in braces",
        ),
    ],
)  # fmt: skip
def test_what_is_live_becomes_the_value_of_the_file(
    simulated: Simulated, spec: str, partitions: int, live: dict[str, str], adopted: str, said: str
) -> None:
    write(simulated, "kept", "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: kept}\n"
          "spec: {configs: {retention.ms: 7d}}\n", folder="profiles")  # fmt: skip
    write(simulated, "shop", spec)
    simulated.cluster.put_topic("shop", *[(1, 2, 3)] * partitions, configs=live)
    ended = simulated.workspace.run("adopt", "shop")
    assert ended.status == 0, ended.err
    assert ended.out.startswith(f"Written to the files:\n  topics/tests/shop.yaml: {said}\nNext: "), ended.out
    assert spec_of(simulated, "shop") == adopted
    assert "No changes." in simulated.workspace.plan().out
    assert simulated.workspace.run("drift", "--detailed-exitcode").status == 0
    assert simulated.cluster.requests == []


@pytest.mark.parametrize(
    ("spec", "live", "said"),
    [
        pytest.param(
            "spec: {keyed: false, # why\n  partitions: 1}\n",
            {"retention.ms": DAY},
            "shop: retention.ms: not set -> 1d: topics/tests/shop.yaml is written so that no line can be changed",
            id="no line",
        ),
        pytest.param(
            "spec:\n  keyed: false\n",
            {"vendor.tier": "3"},
            'shop: vendor.tier: not set -> "3": TOP305: Kafka has no topic config vendor.tier',
            id="a config of a vendor",
        ),
        pytest.param(
            "spec:\n  keyed: false\n",
            {MIN_ISR: "4"},
            "shop: topics/tests/shop.yaml: min.insync.replicas: not set -> 4: TOP308: ",
            id="a value that a rule is against",
        ),
        pytest.param(
            "spec:\n  assignment: {0: [1, 2]}\n",
            {},
            "shop: replicationFactor: 2 -> 3: its file names the replicas of each partition",
            id="replicas by hand",
        ),
    ],
)
def test_what_no_file_can_say_is_left_with_the_reason(
    simulated: Simulated, spec: str, live: dict[str, str], said: str
) -> None:
    write(simulated, "shop", spec)
    simulated.cluster.put_topic("shop", (1, 2, 3), configs=live)
    ended = simulated.workspace.run("adopt", "shop")
    assert (ended.status, spec_of(simulated, "shop")) == (0, spec), ended.err
    assert f"Not taken over:\n  {said}" in ended.out


def test_an_override_of_the_environment_hides_the_topics_own_value(simulated: Simulated) -> None:
    write(simulated, "shop", "spec:\n  keyed: false\n")
    simulated.cluster.put_topic("shop", *[(1, 2, 3)] * 4)
    simulated.workspace.overrides = {"shop": {"partitions": 2}}
    ended = simulated.workspace.run("adopt", "shop")
    assert "partitions: 2 -> 4: the override at topics/environments/local.yaml:" in ended.out


def test_topics_without_a_value_are_led_to_the_command_that_is_theirs(simulated: Simulated) -> None:
    for name in ("agrees", "gone"):
        simulated.workspace.topic(name)
    simulated.workspace.tombstone("over")
    for name in ("agrees", "over", "stray"):
        simulated.cluster.put_topic(name, (1, 2, 3))
    assert simulated.workspace.run("adopt", "*").out == (
        "Not taken over:\n"
        "  gone: not live: the next plan creates it; if it was to go: "
        "topicops retire gone --reason WHY\n"
        "  over: live, although its file is a tombstone: to keep it, bring the file of before back with git\n"
        "  stray: live, and no file describes it: topicops import --only stray\n"
    )
    assert simulated.workspace.run("adopt", "agr*").out == "Nothing to adopt: 1 topic without a difference.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "topicops adopt '*' for all that drifted"),
        (["shopp"], "shopp: no file describes it, and it is not live; did you mean shop?"),
    ],
)
def test_what_names_no_topic_is_an_error(simulated: Simulated, arguments: list[str], said: str) -> None:
    simulated.workspace.topic("shop")
    ended = simulated.workspace.run("adopt", *arguments)
    assert (ended.status, ended.out, said in ended.err) == (1, "", True), ended.err


def test_an_invalid_file_of_another_topic_is_in_nobodys_way(simulated: Simulated) -> None:
    write(simulated, "broken", "spec: {partitions: none}\n")
    write(simulated, "shop", "spec:\n  keyed: false\n")
    simulated.cluster.put_topic("shop", *[(1, 2, 3)] * 2)
    assert simulated.workspace.run("adopt", "shop").status == 0
    assert spec_of(simulated, "shop").endswith("  partitions: 2\n")


@pytest.mark.parametrize(("others", "block"), [([], "spec"), (["dev"], "spec.overrides.prod")])
def test_a_file_of_several_environments_has_a_block_for_each(others: list[str], block: str) -> None:
    assert ".".join(block_of("prod", others)) == block


def test_a_file_of_several_environments_gets_the_value_for_this_one_alone(simulated: Simulated) -> None:
    write(simulated, "shop", "spec:\n  keyed: false\n")
    simulated.cluster.put_topic("shop", *[(1, 2, 3)] * 2)
    simulated.workspace.write_environment()
    folder = simulated.workspace.folder / "topics/environments"
    (folder / "prod.yaml").write_text((folder / "local.yaml").read_text().replace("name: local", "name: prod"))
    ended = simulated.workspace.run("adopt", "shop", "--environment", "local")
    assert "topics/tests/shop.yaml: partitions: 1 -> 2" in ended.out, ended.err
    added = "  overrides:\n    local:\n      partitions: 2\n"
    assert spec_of(simulated, "shop") == f"spec:\n  keyed: false\n{added}"
    simulated.cluster.put_topic("shop", *[(1, 2, 3)] * 3)
    simulated.workspace.run("adopt", "shop", "--environment", "local")
    assert spec_of(simulated, "shop") == f"spec:\n  keyed: false\n{added}".replace("2", "3")
