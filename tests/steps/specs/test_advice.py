"""What a message tells a person to do can be done, and the files are good then."""

from __future__ import annotations

from pathlib import Path

from fakes.builders import live_topic, snapshot
from fixtures.planning import plan_of
from fixtures.spec_folder import HEAD, LOCAL, NOW, PROD, owners, topic, validated

ORDERS = topic("orders", "spec: {partitions: 6}\n")
OVERRIDE = LOCAL + "  overrides: {orders: {partitions: 12}}\n"
HERE_ONLY = topic("orders", "spec: {partitions: 6, overrides: {local: {partitions: 12}}}\n")


def codes(folder: Path, files: dict[str, str], *, local: str = LOCAL) -> list[str]:
    folder.mkdir()
    return [found.code for found in validated(folder, files, local=local).diagnostics if found.is_error]


def test_top702_first_what_the_other_half_needs(tmp_path: Path) -> None:
    """A new topic and its override: the policy cannot come first, and need not: the topic's own file can hold it."""
    assert codes(tmp_path / "policy-first", {}, local=OVERRIDE) == ["TOP319"]
    assert codes(tmp_path / "topic-first", {"shop/orders.yaml": ORDERS}) == []
    assert codes(tmp_path / "then-policy", {"shop/orders.yaml": ORDERS}, local=OVERRIDE) == []
    assert codes(tmp_path / "or-at-once", {"shop/orders.yaml": HERE_ONLY}) == []


def test_top105_what_topics_share_goes_into_a_profile(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(220)]
    value = "{partitions: 12, configs: {retention.ms: 30d, max.message.bytes: 2MiB}}"
    overrides = LOCAL + "  overrides:\n" + "".join(f"    {name}: {value}\n" for name in names)
    files = {f"shop/{name}.yaml": topic(name) for name in names}
    found = validated(tmp_path, files, local=overrides).diagnostics
    [wrong] = [problem for problem in found if problem.code == "TOP105"]
    assert wrong.help
    assert "into a profile" in wrong.help

    profile = HEAD.format(kind="Profile", name="big") + f"  {value[1:-1].replace(', configs', chr(10) + '  configs')}\n"
    shared = {f"shop/{name}.yaml": topic(name, "spec: {profile: big}\n") for name in names}
    assert codes(tmp_path / "shared", {**shared, "profiles/big.yaml": profile}) == []


def test_top401_the_number_of_one_environment_stands_in_its_file(tmp_path: Path) -> None:
    live = snapshot(live_topic("orders", 12))
    for orders, is_blocked in ((ORDERS, True), (HERE_ONLY, False)):
        folder = tmp_path / str(is_blocked)
        folder.mkdir()
        environment, desired = validated(folder, {**PROD, "shop/orders.yaml": orders}).require()
        blocked = plan_of(desired, live, environment, now=NOW).blocked
        assert [entry.codes for entry in blocked] == ([("TOP401",)] if is_blocked else [])
        if is_blocked:
            assert "below spec.overrides.local; or move the data" in blocked[0].way_out


def test_an_owner_is_renamed_in_three_steps_of_which_each_is_good(tmp_path: Path) -> None:
    def owned_by(*names: str) -> str:
        return owners(*(f'owner: {name}, topics: ["ord*"]' for name in names))

    renamed = ORDERS.replace("team-web", "team-shop")
    assert codes(tmp_path / "at-once-half", {"shop/orders.yaml": renamed, "owners.yaml": owned_by("team-web")}) != []
    for step, (file, names) in enumerate(
        [(ORDERS, ("team-web", "team-shop")), (renamed, ("team-web", "team-shop")), (renamed, ("team-shop",))]
    ):
        assert codes(tmp_path / str(step), {"shop/orders.yaml": file, "owners.yaml": owned_by(*names)}) == []
