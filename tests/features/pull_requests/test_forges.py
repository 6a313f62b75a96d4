"""GitHub and GitLab through one port: the same story on both, against the fake that speaks as they do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from fixtures.fake_forge import BOT, PERSON, PERSONAL_TOKEN, REPOSITORY, TOKEN, FakeCheck, FakeForge, MergeMethod
from topicops.features.pull_requests.edges.forge import Check, CheckResult, ForgeError, PullRequest, ReviewVerdict
from topicops.features.pull_requests.edges.github import GitHub
from topicops.features.pull_requests.edges.gitlab import GitLab
from topicops.features.pull_requests.edges.surroundings import Forge

HEAD, MERGED = "a" * 40, "b" * 40
FILES = ["topics/shop/shop.orders.yaml"]


@pytest.fixture
def fake() -> Iterator[FakeForge]:
    with FakeForge() as fake:
        yield fake


@pytest.fixture(params=[GitHub, GitLab])
def forge(fake: FakeForge, request: pytest.FixtureRequest) -> Forge:
    more = {"members_token": PERSONAL_TOKEN} if request.param is GitHub else {}
    return request.param(fake.url, REPOSITORY, TOKEN, sleep=at_once, **more)


def merged_as(forge: Forge, commit: str) -> PullRequest | None:
    return next((pull for pull in forge.pull_requests_with(commit) if pull.merge_commit == commit), None)


def at_once(_: float) -> None:
    """Wait for no second try."""


def test_a_pull_request_is_found_by_its_number_and_by_its_merge(fake: FakeForge, forge: Forge) -> None:
    pull = fake.open(HEAD, FILES, author="bob")
    opened = forge.pull_request(pull.number)
    assert (opened.number, opened.author, opened.state, opened.head_commit) == (1, "bob", "open", HEAD)
    assert (opened.base_branch, opened.is_from_fork, opened.merge_commit) == ("main", False, None)
    assert opened.url.startswith("http://")
    assert merged_as(forge, MERGED) is None

    fake.merge(pull.number, MERGED)

    merged = merged_as(forge, MERGED)
    assert merged is not None
    assert (merged.number, merged.state, merged.merge_commit) == (1, "merged", MERGED)
    assert merged_as(forge, HEAD) is None, "the branch's own commit did not merge it"


@pytest.mark.parametrize("method", ["merge", "squash", "fast-forward"])
def test_the_merge_commit_is_known_however_it_was_merged(fake: FakeForge, forge: Forge, method: MergeMethod) -> None:
    fake.open(HEAD)

    fake.merge(1, MERGED, method=method)

    merged = merged_as(forge, MERGED)
    assert merged is not None
    assert (merged.merge_commit, merged.state) == (MERGED, "merged")


def test_a_closed_one_is_neither_open_nor_merged(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.close(1)

    assert (forge.pull_request(1).state, list(forge.open_pull_requests("main"))) == ("closed", [])


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


def test_authors_are_who_opened_it_who_pushed_and_who_made_commits_before(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD, author="bob").committers = {"dave"}
    fake.push(1, "c" * 40, committer="carol")

    assert forge.authors(1).logins == {"bob", "carol", "dave"}


@pytest.mark.parametrize("unknown", [["d" * 40], ["e" * 40, "d" * 40]], ids=["null", "null and an empty object"])
def test_a_commit_of_no_account_is_told(fake: FakeForge, unknown: list[str]) -> None:
    github = GitHub(fake.url, REPOSITORY, TOKEN)
    fake.open(HEAD, author="bob")
    assert github.authors(1).unknown_commit == ""
    fake.pulls[1].unknown_commits = unknown
    assert (github.authors(1).logins, github.authors(1).unknown_commit) == ({"bob"}, unknown[0])


def test_a_co_author_whose_address_names_the_account_is_an_author_too(fake: FakeForge) -> None:
    pull = fake.open(HEAD, author="bob")
    pull.message = (
        "Add a topic\n\nCo-authored-by: Erin <12345+erin@users.noreply.github.com>\n"
        "co-authored-by: Frank <frank@users.noreply.github.com>\nCo-authored-by: Grace <grace@example.org>\n"
    )

    assert GitHub(fake.url, REPOSITORY, TOKEN).authors(1).logins == {"bob", "erin", "frank"}


def test_authors_that_the_forge_does_not_list_are_no_silent_gap(fake: FakeForge) -> None:
    fake.open(HEAD, author="bob").committers = {f"person-{number}" for number in range(300)}

    with pytest.raises(ForgeError, match="#1 has 301 commits, and GitHub lists 250: squash them"):
        GitHub(fake.url, REPOSITORY, TOKEN).authors(1)


def test_our_comments_are_those_of_our_account_alone(fake: FakeForge, forge: Forge) -> None:
    fake.page = 2
    fake.open(HEAD)
    fake.comment(1, "mallory", "<!-- topicops:comment environment=prod kind=plan -->")
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
    fake.review(1, "dave")

    found = forge.reviews(1)

    assert [(review.reviewer, review.verdict) for review in found] == [
        ("alice", ReviewVerdict.APPROVED),
        ("carol", ReviewVerdict.CHANGES_REQUESTED),
        ("dave", ReviewVerdict.APPROVED),
    ]
    assert comment.updated_at < found[0].submitted_at < found[1].submitted_at < found[2].submitted_at


def test_a_dismissed_approval_is_none_until_the_next_one(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.review(1, "alice")
    fake.review(1, "alice", ReviewVerdict.DISMISSED)

    assert {review.verdict for review in forge.reviews(1)} == {ReviewVerdict.DISMISSED}
    fake.review(1, "alice")
    assert forge.reviews(1)[-1].verdict is ReviewVerdict.APPROVED


def test_an_approval_that_a_push_took_back_on_gitlab_is_dismissed(fake: FakeForge) -> None:
    fake.open(HEAD)
    fake.review(1, "alice")
    fake.review(1, "carol")
    fake.pulls[1].reset_approvals()
    fake.review(1, "carol")

    found = GitLab(fake.url, REPOSITORY, TOKEN).reviews(1)

    assert [(review.reviewer, review.verdict) for review in found] == [
        ("alice", ReviewVerdict.DISMISSED),
        ("carol", ReviewVerdict.APPROVED),
        ("carol", ReviewVerdict.APPROVED),
    ]


def test_an_older_gitlab_has_the_time_of_an_approval_in_its_note_alone(fake: FakeForge) -> None:
    fake.open(HEAD)
    fake.review(1, "alice")
    fake.answers = [b'{"approved_by": [{"user": {"username": "alice"}}]}']

    [review] = GitLab(fake.url, REPOSITORY, TOKEN).reviews(1)

    assert review == replace(fake.pulls[1].reviews[0], commit=None)


def test_an_approval_without_a_note_counts_from_the_time_that_gitlab_has_for_it(fake: FakeForge) -> None:
    fake.open(HEAD)
    fake.review(1, "alice")
    given = fake.pulls[1].reviews[0].submitted_at
    known, unknown = ({"user": {"username": name}, "approved_at": at} for name, at in (("alice", given), ("bob", None)))
    fake.answers = [msgspec.json.encode({"approved_by": [known, unknown]}), b"[]"]

    [review] = GitLab(fake.url, REPOSITORY, TOKEN).reviews(1)

    assert review == replace(fake.pulls[1].reviews[0], commit=None), "without any time nobody knows what bob saw"


def test_times_are_in_utc_whatever_the_zone_of_the_server(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.zone = timedelta(hours=2)
    before = datetime.now(UTC) - timedelta(seconds=1)

    comment = forge.add_comment(1, "text")

    assert comment.updated_at.tzinfo is UTC
    assert before <= comment.updated_at <= before + timedelta(minutes=1)


def test_members_of_a_team_and_a_team_that_may_not_be_read(fake: FakeForge, forge: Forge) -> None:
    fake.teams["acme/shop"] = {"alice", "carol"}

    assert forge.members("acme/shop") == {"alice", "carol"}
    with pytest.raises(ForgeError, match="404 Not Found; it is not there, or the token may not see it"):
        forge.members("acme/others")


def test_a_time_of_no_calendar_is_an_error_of_the_forge(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD, FILES)
    fake.review(1, "alice", ReviewVerdict.APPROVED)
    fake.pulls[1].reviews[0] = replace(fake.pulls[1].reviews[0], submitted_at=datetime(1, 1, 2, tzinfo=UTC))
    fake.zone = timedelta(hours=14)

    with pytest.raises(ForgeError, match="a time that cannot be"):
        forge.reviews(1)


@pytest.mark.parametrize("result", CheckResult)
def test_a_check_is_replaced_by_the_next_one(fake: FakeForge, forge: Forge, result: CheckResult) -> None:
    forge.set_check(HEAD, Check(name="topicops", result=CheckResult.FAILURE, title="Wrong"))
    forge.set_check(HEAD, Check(name="topicops", result=result, title="x" * 250, summary="- more", url="https://ci/7"))

    check = fake.check(HEAD)
    assert check is not None
    in_github = {"success": "success", "neutral": "neutral", "failure": "failure", "pending": "in_progress"}
    in_gitlab = {"success": "success", "neutral": "success", "failure": "failed", "pending": "running"}
    assert check.result == (in_github if isinstance(forge, GitHub) else in_gitlab)[result]
    assert (check.title, check.url) == ("x" * 250, "https://ci/7")
    assert list(fake.checks[HEAD]) == ["topicops"]


def test_a_job_with_the_name_of_our_check_is_left_alone(fake: FakeForge) -> None:
    job = FakeCheck(id=7, name="topicops", result="success", title="the job")
    other = FakeCheck(id=8, name="topicops", result="success", title="of another app", app="x", external_id="topicops")

    for there in (job, other):
        fake.checks[HEAD] = {"topicops": there}
        fake.requests.clear()
        GitHub(fake.url, REPOSITORY, TOKEN).set_check(
            HEAD, Check(name="topicops", result=CheckResult.SUCCESS, title="t")
        )
        assert [request.partition(" ")[0] for request in fake.requests] == ["GET", "POST"]


def test_on_github_only_an_app_writes_checks_and_only_another_token_reads_teams(fake: FakeForge) -> None:
    check = Check(name="topicops", result=CheckResult.SUCCESS, title="t")

    with pytest.raises(ForgeError, match=r"403 You must authenticate via a GitHub App\."):
        GitHub(fake.url, REPOSITORY, PERSONAL_TOKEN, login=PERSON).set_check(HEAD, check)
    with pytest.raises(ForgeError, match="403 Resource not accessible by integration; the token may not do this"):
        GitHub(fake.url, REPOSITORY, TOKEN).members("acme/shop")


def test_a_line_of_a_comment_is_no_command_to_gitlab(fake: FakeForge) -> None:
    fake.open(HEAD)
    forge = GitLab(fake.url, REPOSITORY, TOKEN)

    forge.add_comment(1, "plan of a/b\n/merge\n  /approve\n`/x`")

    assert fake.bodies(1) == ["plan of a/b\n\\/merge\n  \\/approve\n`/x`"]


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
    fake.refusal = {"message": f"no\nright for {TOKEN}\x1b[2J", "errors": [{"message": "body is too long"}]}
    fake.refusals = [(422, {})]
    with pytest.raises(ForgeError) as error:
        forge.add_comment(1, "text")
    assert str(error.value).endswith(r"422 no\nright for ***\x1b[2J: body is too long")


def test_a_refusal_names_the_right_that_github_wants(fake: FakeForge) -> None:
    fake.refusals = [(403, {"X-Accepted-GitHub-Permissions": "pull_requests=write; issues=write"})]

    with pytest.raises(ForgeError, match="the token lacks a right: pull_requests=write; issues=write"):
        GitHub(fake.url, REPOSITORY, TOKEN).add_comment(1, "text")


def test_what_only_reads_is_asked_again_and_what_writes_is_not(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.refusals = [(502, {}), (503, {}), (504, {})]

    assert forge.pull_request(1).number == 1
    fake.refusals = [(502, {})]
    with pytest.raises(ForgeError, match="502 refused by the test; try again later"):
        forge.add_comment(1, "text")
    assert fake.bodies(1) == []
    assert len(fake.requests) == 5


def test_a_request_that_was_refused_unread_is_sent_again(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.limit(times=3)

    forge.add_comment(1, "text")

    assert fake.bodies(1) == ["text"]
    fake.limit(times=4)
    with pytest.raises(ForgeError, match="429 refused by the test; there were too many requests: try again in 0 s"):
        forge.add_comment(1, "text")


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Retry-After": "3600"}, id="as both say it"),
        pytest.param({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "32503680000"}, id="as GitHub says it"),
    ],
)
def test_a_forge_that_asks_for_a_long_wait_is_not_waited_for(
    fake: FakeForge, forge: Forge, headers: dict[str, str]
) -> None:
    fake.open(HEAD)
    fake.refusals = [(403, headers)]

    with pytest.raises(ForgeError, match=r"there were too many requests: try again in \d{4,} s"):
        forge.pull_request(1)
    assert len(fake.requests) == 1


def test_all_tries_of_one_request_take_a_minute_at_most(fake: FakeForge) -> None:
    waited: list[float] = []
    fake.limit(times=9, retry_after_s=50)

    with pytest.raises(ForgeError, match="429"):
        GitHub(fake.url, REPOSITORY, TOKEN, sleep=waited.append).pull_request(1)

    assert sum(waited) <= 60


def test_a_wrong_token_is_told_as_one(fake: FakeForge) -> None:
    with pytest.raises(ForgeError, match="401 Bad credentials; the token is not valid"):
        GitHub(fake.url, REPOSITORY, "another").pull_request(1)


@pytest.mark.parametrize("kind", [GitHub, GitLab])
def test_a_server_that_is_no_forge_or_does_not_answer_is_one_sentence(kind: Callable[..., Forge]) -> None:
    forge = kind("http://127.0.0.1:9", REPOSITORY, TOKEN, sleep=at_once)

    with pytest.raises(ForgeError, match=r"http://127\.0\.0\.1:9 does not answer: GET /"):
        forge.pull_request(1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"<html>Sign in</html>", id="a page"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="another kind"),
        pytest.param(b'{"number": "1"}', id="a field of another type"),
        pytest.param(b'{"title": "\xff\xfe"}', id="no UTF-8"),
        pytest.param(b"[" * 100_000, id="endless depth"),
    ],
)
def test_an_answer_that_is_none_of_a_forge_is_one_sentence(fake: FakeForge, forge: Forge, answer: bytes) -> None:
    fake.open(HEAD)
    fake.answers = [answer]

    with pytest.raises(ForgeError, match="1: the answer is not that of a forge's API: "):
        forge.pull_request(1)


def test_a_time_without_its_zone_is_no_answer_of_a_forge(fake: FakeForge, forge: Forge) -> None:
    fake.open(HEAD)
    fake.zone = None

    with pytest.raises(ForgeError, match="timezone"):
        forge.add_comment(1, "text")


def test_no_other_server_gets_the_token(fake: FakeForge, forge: Forge) -> None:
    with FakeForge() as thief:
        fake.refusals = [(301, {"Location": f"{thief.url}/x"})]
        with pytest.raises(ForgeError, match="the repository has another name now: give that one"):
            forge.pull_request(1)
        fake.refusals = [(307, {"Location": f"{thief.url}/x"})]
        with pytest.raises(ForgeError, match="307 refused by the test; the repository has another name now"):
            forge.add_comment(1, "text")
        fake.refusal, fake.refusals = [], [(200, {"Link": f'<{thief.url}/x>; rel="next"'})]
        with pytest.raises(ForgeError, match="sends us to another server"):
            forge.open_pull_requests("main")
    assert thief.requests == []


def test_a_slow_proxy_of_the_company_is_used(fake: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.open(HEAD)
    fake.delay_s = 0.01
    monkeypatch.setenv("HTTP_PROXY", fake.url)
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)

    assert GitHub("http://forge.example", REPOSITORY, TOKEN).pull_request(1).number == 1
    assert fake.requests == ["GET http://forge.example/repos/acme/topics/pulls/1"]


def test_a_comment_that_is_too_long_is_not_sent(fake: FakeForge) -> None:
    fake.open(HEAD)

    with pytest.raises(ForgeError, match="the comment has 65537 characters, and GitHub takes 65536"):
        GitHub(fake.url, REPOSITORY, TOKEN).add_comment(1, "x" * 65_537)
    with pytest.raises(ForgeError, match="the comment has 1000001 characters, and GitLab takes 1000000"):
        GitLab(fake.url, REPOSITORY, TOKEN).add_comment(1, "x" * 1_000_001)
    assert fake.requests == []


def test_the_bot_is_the_account_of_the_token_on_gitlab(fake: FakeForge) -> None:
    fake.open(HEAD)
    fake.comment(1, BOT, "ours")

    assert [comment.body for comment in GitLab(fake.url, REPOSITORY, TOKEN).own_comments(1)] == ["ours"]
    assert GitLab(fake.url, REPOSITORY, TOKEN, login="somebody").own_comments(1) == []


# ---- The fake itself: tests can play people with it, and make it answer badly; its shapes have their own tests ----

PULLS, REQUESTS = "/repos/acme/topics/pulls", "/projects/acme%2Ftopics/merge_requests"


@pytest.fixture
def http(fake: FakeForge) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=fake.url, headers=headers, trust_env=False, verify=False) as http:
        yield http


def test_the_merge_commit_of_an_open_one_is_not_that_of_its_merge(fake: FakeForge, http: httpx.Client) -> None:
    fake.open(HEAD)
    assert http.get(f"{PULLS}/1").json()["merge_commit_sha"] not in (None, MERGED)

    fake.merge(1, MERGED)

    assert http.get(f"{PULLS}/1").json()["merge_commit_sha"] == MERGED
    assert http.get(f"{REQUESTS}/1").json()["state"] == "merged"


def test_pages_are_as_small_as_the_test_wants(fake: FakeForge, http: httpx.Client) -> None:
    fake.page = 2
    for _ in range(3):
        fake.open(HEAD)

    first = http.get(f"{REQUESTS}?per_page=100")
    assert [entry["iid"] for entry in first.json()] == [1, 2]
    assert first.headers["x-next-page"] == "2"
    last = http.get(first.links["next"]["url"])
    assert ([entry["iid"] for entry in last.json()], last.headers["x-next-page"], last.links) == ([3], "", {})


def test_it_answers_badly_on_demand(fake: FakeForge, http: httpx.Client) -> None:
    fake.open(HEAD)
    fake.refused = {r"GET /repos/.*/reviews": 403}
    fake.limit(times=1, retry_after_s=7)
    fake.delay_s = 0.02

    started = time.monotonic()
    assert http.get(f"{PULLS}/1").headers["retry-after"] == "7"
    assert time.monotonic() - started >= 0.02
    assert http.get(f"{PULLS}/1/reviews").status_code == 403
    assert http.get(f"{PULLS}/1").status_code == 200
    assert http.get(f"{PULLS}/2").status_code == 404
    assert http.put(f"{PULLS}/1").status_code == 405
    assert http.get(f"{PULLS}/1", headers={"Authorization": "Bearer another"}).status_code == 401
