"""GitHub and GitLab through one port: the same story on both, against the fake that speaks as they do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topicops.edges.forge.github import GitHub
from topicops.edges.forge.gitlab import GitLab
from topicops.model.errors import ForgeError
from topicops.model.pull_requests.forge import Check, CheckResult, Forge, ReviewVerdict
from topicops.testing.fake_forge import BOT, REPOSITORY, TOKEN, FakeForge

HEAD, MERGED = "a" * 40, "b" * 40
FILES = ["topics/shop/shop.orders.yaml"]


@pytest.fixture
def fake() -> Iterator[FakeForge]:
    with FakeForge() as fake:
        yield fake


@pytest.fixture(params=[GitHub, GitLab])
def forge(fake: FakeForge, request: pytest.FixtureRequest) -> Forge:
    return request.param(fake.url, REPOSITORY, TOKEN)


def test_a_pull_request_is_found_by_its_number_and_by_its_merge(fake: FakeForge, forge: Forge) -> None:
    pull = fake.open(HEAD, FILES, author="bob")
    opened = forge.pull_request(pull.number)
    assert (opened.number, opened.author, opened.state, opened.head_commit) == (1, "bob", "open", HEAD)
    assert (opened.base_branch, opened.is_from_fork, opened.merge_commit) == ("main", False, None)
    assert opened.url.startswith("http://")
    assert forge.pull_request_of(MERGED) is None

    fake.merge(pull.number, MERGED)

    merged = forge.pull_request_of(MERGED)
    assert merged is not None
    assert (merged.number, merged.state, merged.merge_commit) == (1, "merged", MERGED)
    assert forge.pull_request_of(HEAD) is None, "the branch's own commit did not merge it"


def test_one_of_a_fork_is_known_as_such(fake: FakeForge, forge: Forge) -> None:
    assert forge.pull_request(fake.open(HEAD, fork=True).number).is_from_fork


def test_open_ones_come_in_order_and_over_all_pages(fake: FakeForge, forge: Forge) -> None:
    fake.page = 2
    for _ in range(5):
        fake.open(HEAD)
    fake.merge(2, MERGED)
    fake.pulls[4].base = "release"

    assert [pull.number for pull in forge.open_pull_requests("main")] == [1, 3, 5]


def test_a_renamed_file_counts_with_both_names(fake: FakeForge, forge: Forge) -> None:
    pull = fake.open(HEAD, FILES)
    pull.renamed = {"topics/new.yaml": "topics/old.yaml"}

    assert forge.changed_files(1) == {*FILES, "topics/new.yaml", "topics/old.yaml"}


def test_authors_are_who_opened_it_and_who_pushed(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD, author="bob")
    fake.push(1, "c" * 40, committer="carol")

    assert forge.authors(1) == {"bob", "carol"}


def test_our_comments_are_those_of_our_account_alone(fake: FakeForge, forge: Forge) -> None:
    fake.page = 2
    fake.open(HEAD)
    fake.comment(1, "mallory", "<!-- topicops:comment environment=prod part=1 -->")
    first = forge.add_comment(1, "one")
    second = forge.add_comment(1, "two")
    edited = forge.edit_comment(1, first.id, "one, edited")

    assert [comment.body for comment in forge.own_comments(1)] == ["one, edited", "two"]
    assert edited.updated_at > first.updated_at
    forge.remove_comment(1, second.id)
    forge.remove_comment(1, second.id)
    assert fake.bodies(1) == ["one, edited"]


def test_reviews_come_oldest_first_with_their_time(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    comment = forge.add_comment(1, "the plan")
    fake.review(1, "alice")
    fake.review(1, "carol", ReviewVerdict.CHANGES_REQUESTED)
    fake.review(1, "alice", ReviewVerdict.DISMISSED)

    found = forge.reviews(1)

    assert [(review.reviewer, review.verdict) for review in found] == [
        ("alice", ReviewVerdict.APPROVED),
        ("carol", ReviewVerdict.CHANGES_REQUESTED),
        ("alice", ReviewVerdict.DISMISSED),
    ]
    assert comment.updated_at < found[0].submitted_at < found[1].submitted_at < found[2].submitted_at


def test_members_of_a_team_and_a_team_that_may_not_be_read(fake: FakeForge, forge: Forge) -> None:
    fake.teams["acme/shop"] = {"alice", "carol"}

    assert forge.members("acme/shop") == {"alice", "carol"}
    with pytest.raises(ForgeError, match="404 Not Found; it is not there, or the token may not see it"):
        forge.members("acme/others")


@pytest.mark.parametrize("result", CheckResult)
def test_a_check_is_replaced_by_the_next_one(fake: FakeForge, forge: Forge, result: CheckResult) -> None:
    forge.set_check(HEAD, Check(name="topicops", result=CheckResult.FAILURE, title="Wrong"))
    forge.set_check(HEAD, Check(name="topicops", result=result, title="x" * 250, summary="- more", url="https://ci/7"))

    check = fake.check(HEAD)
    assert check is not None
    in_gitlab = {"success": "success", "neutral": "success", "failure": "failed"}
    assert check.result == (result if isinstance(forge, GitHub) else in_gitlab[result])
    assert (check.title, check.url) == ("x" * 250, "https://ci/7")
    assert list(fake.checks[HEAD]) == ["topicops"]


def test_labels_of_others_stay(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD).labels = {"urgent", "topics:safe"}

    forge.set_labels(1, {"topics:safe": False, "topics:risky": True, "topics:notice": False})

    assert fake.pulls[1].labels == {"urgent", "topics:risky"}


def test_a_refusal_is_one_sentence_without_the_token(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.refusals = [(403, {})]

    with pytest.raises(ForgeError) as error:
        forge.add_comment(1, "text")

    assert "403 refused by the test; the token may not do this" in str(error.value)
    assert TOKEN not in str(error.value)


def test_what_only_reads_is_asked_again_and_what_writes_is_not(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.refusals = [(502, {}), (429, {"Retry-After": "0"})]
    forge._rest._sleep = lambda _: None  # type: ignore[attr-defined]

    assert forge.pull_request(1).number == 1
    fake.refusals = [(502, {})]
    with pytest.raises(ForgeError, match="502"):
        forge.add_comment(1, "text")
    assert fake.bodies(1) == []


def test_a_forge_that_asks_for_a_long_wait_is_not_waited_for(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.refusals = [(403, {"Retry-After": "3600"})]

    with pytest.raises(ForgeError, match="takes no more requests of this token now"):
        forge.pull_request(1)


def test_a_wrong_token_is_told_as_one(fake: FakeForge) -> None:
    with pytest.raises(ForgeError, match="401 Bad credentials; the token is not valid"):
        GitHub(fake.url, REPOSITORY, "another").pull_request(1)


@pytest.mark.parametrize("kind", [GitHub, GitLab])
def test_a_server_that_is_no_forge_or_does_not_answer_is_one_sentence(kind: type[GitHub | GitLab]) -> None:
    forge = kind("http://127.0.0.1:9", REPOSITORY, TOKEN)
    forge._rest._sleep = lambda _: None

    with pytest.raises(ForgeError, match=r"http://127\.0\.0\.1:9 does not answer: GET /"):
        forge.pull_request(1)


def test_a_comment_that_is_too_long_is_not_sent(fake: FakeForge) -> None:
    fake.open(HEAD)

    with pytest.raises(ForgeError, match="the comment has 65537 characters, and GitHub takes 65536"):
        GitHub(fake.url, REPOSITORY, TOKEN).add_comment(1, "x" * 65_537)
    assert fake.requests == []


def test_the_bot_is_the_account_of_the_token_on_gitlab(fake: FakeForge) -> None:
    fake.open(HEAD)
    fake.comment(1, BOT, "ours")

    assert [comment.author for comment in GitLab(fake.url, REPOSITORY, TOKEN).own_comments(1)] == [BOT]
