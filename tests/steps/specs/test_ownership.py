"""What platform teams ask of names, labels and owners."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import LOCAL, PROD, owners, topic, validated


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(files: dict[str, str], *, environment: str | None = "local", local: str = LOCAL) -> list[tuple[str, str, str]]:
    answer = validated(Path(), files, environment=environment, local=local)
    return [(each.code, each.summary, each.help) for each in answer.diagnostics]


def test_a_budget_counts_all_topics_of_an_owner_in_one_environment_and_names_the_largest() -> None:
    files = {
        f"web/{name}.yaml": topic(name, f"spec: {{partitions: {count}}}\n") for name, count in (("a", 8), ("b", 3))
    }

    assert said(
        {**files, "owners.yaml": owners("owner: team-web, partitions: 10", "owner: team-shop, partitions: 0")}
    ) == [
        (
            "TOP321",
            "team-web would have 11 partitions in local, 10 allowed",
            "lower them, or raise the budget; the largest: a 8, b 3",
        )
    ]


def test_each_environment_in_which_a_budget_is_exceeded_is_named() -> None:
    other = LOCAL.replace("name: local", "name: other")
    files = {"web/a.yaml": topic("a"), "environments/other.yaml": other}

    found = said({**files, "owners.yaml": owners("owner: team-web, partitions: 2")}, environment=None)

    assert [summary for _, summary, _ in found] == [
        "team-web would have 3 partitions in local, 2 allowed",
        "team-web would have 3 partitions in other, 2 allowed",
    ]


def test_a_budget_of_one_environment_leaves_the_others_alone() -> None:
    found = owners("owner: team-web", "owner: team-web, environments: [prod], partitions: 2")

    assert said({**PROD, "web/a.yaml": topic("a"), "owners.yaml": found}) == []


def test_an_owner_that_is_misspelled_is_told_the_likely_one() -> None:
    files = {"web/a.yaml": topic("a"), "owners.yaml": owners("owner: team-wep")}

    assert said(files) == [("TOP331", "owners.yaml has no owner team-web", "did you mean team-wep?")]


def test_a_name_that_two_owners_share_belongs_to_both() -> None:
    both = owners('owner: team-shop, topics: ["a*"]', "owner: team-web, topics: [a]")

    assert said({"web/a.yaml": topic("a"), "owners.yaml": both}) == []


def test_a_topic_that_is_to_be_deleted_may_have_any_name_labels_and_owner() -> None:
    policy = '  policy: {namePattern: "b", requiredLabels: [tier], allowedOwners: [team-shop]}\n'
    gone = topic("a", "lifecycle: {state: absent, reason: gone}\n")

    assert (
        said({"web/a.yaml": gone, "owners.yaml": owners('owner: team-shop, topics: ["*"]')}, local=LOCAL + policy) == []
    )


def test_an_exception_lifts_what_the_policy_asks_of_one_topic() -> None:
    exceptions = ", ".join(f"{{topic: a, code: {code}, reason: old}}" for code in ("TOP329", "TOP330", "TOP331"))
    policy = f"  policy: {{namePattern: b, requiredLabels: [t], allowedOwners: [], exceptions: [{exceptions}]}}\n"

    answer = validated(Path(), {"web/a.yaml": topic("a")}, local=LOCAL + policy)

    assert sorted((each.code, each.is_error) for each in answer.diagnostics) == [
        ("TOP329", False),
        ("TOP330", False),
        ("TOP331", False),
    ]


def test_the_whole_name_must_match_the_pattern() -> None:
    policy = '  policy: {namePattern: "[a-z]+\\\\.[a-z]+|legacy"}\n'
    names = ("web.clicks", "legacy", "legacy.v2", "web.clicks2")

    found = said({f"web/{name}.yaml": topic(name) for name in names}, local=LOCAL + policy)

    assert [summary for _, summary, _ in found] == [
        "legacy.v2 does not match [a-z]+\\.[a-z]+|legacy",
        "web.clicks2 does not match [a-z]+\\.[a-z]+|legacy",
    ]


def test_the_file_of_owners_is_in_no_folder() -> None:
    files = {"web/owners.yaml": topic("owners"), "owners.yaml": owners("owner: team-web")}

    assert said(files) == []
