"""The import of a second environment: what it has in another way goes into the files that are there."""

from __future__ import annotations

from pathlib import Path

from fakes.builders import live_topic, snapshot
from fixtures.planning import plan_of
from fixtures.spec_folder import LOCAL, NOW, PROD, topic, write
from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.drafts import ImportResult, draft_import
from topicops.features.files.authoring.importable import ImportInputs, TopicOwners
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.steps.specs.validate import validate

LEVELS = """\
apiVersion: topicops/v1
kind: Topic
metadata:
  name: river.levels   # the gauges
  owner: team-river
  environments: [local]
spec:
  partitions: 2
  configs:
    # as the law wants it
    compression.type: zstd
    retention.ms: 1d
    segment.ms: 1h
"""
IN_PROD = """\
  overrides:
    prod:
      partitions: 12
      configs:
        retention.ms: 30d
        segment.ms: null
"""


def imported(folder: Path, live: ClusterSnapshot, environment: str = "prod") -> ImportResult:
    """Write what comes of the import."""
    tree = read_tree(folder)
    found, desired = validate(tree, environment=environment, now=NOW).require()
    texts, result = draft_import(
        ImportInputs(
            topics=folder,
            tree=tree,
            environment=found,
            desired=desired,
            live=live,
            exceptions_text=None,
            now=NOW,
            owners=TopicOwners(otherwise="team-x"),
        )
    )
    for path, text in texts.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return result


def changes(folder: Path, live: ClusterSnapshot, environment: str) -> list[str]:
    found, desired = validate(read_tree(folder), environment=environment, now=NOW).require()
    return [f"{change.action} {change.topic}" for change in plan_of(desired, live, found).changes]


def test_a_topic_that_dev_has_gets_prod_beside_it_and_only_what_differs(tmp_path: Path) -> None:
    write(tmp_path, {**PROD, "river/river.levels.yaml": LEVELS})
    overrides = {"retention.ms": "2592000000", "compression.type": "zstd"}
    live = snapshot(live_topic("river.levels", 12, overrides=overrides), live_topic("river.floods", 3))

    result = imported(tmp_path, live)

    assert (result.extended, result.files) == (("river/river.levels.yaml",), ("river/river.floods.yaml",))
    expected = LEVELS.replace("[local]", "[local, prod]") + IN_PROD
    assert regular_text(tmp_path / "river/river.levels.yaml") == expected
    assert changes(tmp_path, live, "prod") == []
    assert changes(tmp_path, snapshot(), "local") == ["create river.levels"]
    assert imported(tmp_path, live).described == ("river.floods", "river.levels")


def test_a_file_of_every_environment_gets_the_values_alone_and_what_is_not_live_is_named(tmp_path: Path) -> None:
    files = {
        "shop/a.yaml": topic("a", "spec: {partitions: 6}\n"),
        "shop/b.yaml": topic("b"),
        "shop/c.yaml": topic("c", metadata=", environments: [prod]"),
    }
    write(tmp_path, {**PROD, **files})
    live = snapshot(live_topic("a", 9), live_topic("c"))

    result = imported(tmp_path, live)

    assert (result.extended, result.described, result.missing) == (("shop/a.yaml",), ("c",), ("b",))
    added = "spec:\n  partitions: 6\n  overrides:\n    prod:\n      partitions: 9\n"
    assert regular_text(tmp_path / "shop/a.yaml") == topic("a", added)
    assert changes(tmp_path, live, "prod") == ["create b"]


def test_what_cannot_be_added_is_left_out_with_its_file(tmp_path: Path) -> None:
    tombstone = topic("gone", "lifecycle: {state: absent, reason: r}\n", metadata=", environments: [local]")
    braces = topic("odd", "spec: {partitions: 3, # why\n  keyed: true}\n", metadata=", environments: [local]")
    write(tmp_path, {**PROD, "shop/gone.yaml": tombstone, "shop/odd.yaml": braces})

    result = imported(tmp_path, snapshot(live_topic("gone"), live_topic("odd", 4)))

    found = {entry.topic: (entry.code, entry.reason.split("shop/")[1]) for entry in result.left_out}
    assert found == {
        "gone": ("TOP301", "gone.yaml has this name, and it is a tombstone or a pause"),
        "odd": (
            "TOP301",
            "odd.yaml describes it for other environments, and spec has comments inside its value; "
            "write it one field a line",
        ),
    }
    assert regular_text(tmp_path / "shop/odd.yaml") == braces


def test_an_environment_with_a_prefix_imports_its_own_topics_without_it(tmp_path: Path) -> None:
    local = LOCAL.replace("sandbox,", "sandbox, topics: {prefix: dev.},")
    write(tmp_path, {"shop/orders.yaml": topic("orders", "spec: {partitions: 2}\n")}, local=local)
    live = snapshot(
        live_topic("dev.orders", 2), live_topic("dev.fees", 5), live_topic("prod.fees"), live_topic("orders")
    )

    result = imported(tmp_path, live, "local")

    assert (result.imported, result.files, result.described) == (("dev.fees",), ("other/fees.yaml",), ("dev.orders",))
    assert (result.protected, result.left_out) == ((), ())
    environment, desired = validate(read_tree(tmp_path), environment="local", now=NOW).require()
    planned = plan_of(desired, live, environment)
    assert (planned.changes, planned.unmanaged, sorted(desired.topics)) == ((), (), ["dev.fees", "dev.orders"])
    assert plan_of(desired, snapshot(live_topic("dev.x"), live_topic("x")), environment).unmanaged == ("dev.x",)


def company(environment: str) -> ClusterSnapshot:
    """As one company has its topics: 328 in both, of which 156 differ, 66 only in dev, 30 only in prod; 106 shapes."""
    shared, own = range(328), range(328, 394) if environment == "dev" else range(394, 424)
    topics = []
    for number in (*shared, *own):
        overrides = {
            "retention.ms": str((number % 53 + 1) * 3_600_000),
            "cleanup.policy": ("compact", "delete")[number % 2],
        }
        partitions = number % 4 + 1
        if environment == "prod" and number < 156:
            overrides |= {"retention.ms": "2592000000"} if number < 116 else {"max.message.bytes": "2097152"}
            partitions += 6 if number < 29 else 0
        topics.append(live_topic(f"d{number % 23}.t{number}", partitions, overrides=overrides))
    return snapshot(*topics)


def test_a_company_is_imported_by_two_commands_and_both_plans_are_empty(tmp_path: Path) -> None:
    environments = {
        f"environments/{name}.yaml": LOCAL.replace("name: local", f"name: {name}") for name in ("dev", "prod")
    }
    write(tmp_path, environments)
    dev, prod = company("dev"), company("prod")

    first, second = imported(tmp_path, dev, "dev"), imported(tmp_path, prod, "prod")

    assert (len(first.imported), len(second.extended), second.missing) == (394, 328, ())
    assert (changes(tmp_path, dev, "dev"), changes(tmp_path, prod, "prod")) == ([], [])
    topics = [path for path in tmp_path.glob("d*/*.yaml") if (text := regular_text(path)) and "overrides:" in text]
    assert len(topics) == 156
    for name, text in environments.items():
        assert regular_text(tmp_path / name) == text
    changed = tmp_path / "d0/d0.t0.yaml"
    changed.write_text(
        (regular_text(changed) or "").replace("retention.ms: 30d", "retention.ms: 60d"), encoding="utf-8"
    )
    assert (changes(tmp_path, dev, "dev"), changes(tmp_path, prod, "prod")) == ([], ["configure d0.t0"])
