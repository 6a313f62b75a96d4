"""The fake forge: that tests can play people with it, and make it answer badly. Its shapes have their own tests."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from fixtures.fake_forge import BOT, TOKEN, FakeForge
from topicops.features.pull_requests.forge import ReviewVerdict

HEAD, MERGED = "a" * 40, "b" * 40
PULLS, REQUESTS = "/repos/acme/topics/pulls", "/projects/acme%2Ftopics/merge_requests"


@pytest.fixture
def fake() -> Iterator[FakeForge]:
    with FakeForge() as fake:
        yield fake


@pytest.fixture
def http(fake: FakeForge) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=fake.url, headers=headers, trust_env=False, verify=False) as http:
        yield http


def test_both_forges_show_one_store(fake: FakeForge, http: httpx.Client) -> None:
    fake.open(HEAD, ["topics/a.yaml"], author="bob")
    fake.comment(1, "alice", "first")
    http.post(f"{REQUESTS}/1/notes", json={"body": "plan"})
    http.post("/repos/acme/topics/issues/1/labels", json={"labels": ["topics:safe"]})

    assert [entry["user"]["login"] for entry in http.get(f"{PULLS}").json()] == ["bob"]
    assert http.get(f"{REQUESTS}/1").json()["labels"] == ["topics:safe"]
    assert fake.bodies(1) == ["plan"]
    assert fake.labels(1) == {"topics:safe"}
    assert [comment.author for comment in fake.pulls[1].comments] == ["alice", BOT]


def test_each_act_is_later_than_the_one_before(fake: FakeForge) -> None:
    fake.open(HEAD)
    comment = fake.comment(1, BOT, "plan")
    fake.review(1, "alice")
    fake.review(1, "alice", ReviewVerdict.DISMISSED)

    times = [comment.created_at, *(review.submitted_at for review in fake.pulls[1].reviews)]
    assert times == sorted(set(times))


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


def test_it_remembers_the_requests_and_their_tokens(fake: FakeForge, http: httpx.Client) -> None:
    fake.open(HEAD)
    http.get(f"{PULLS}/1?x=1")

    assert (fake.requests, fake.tokens) == ([f"GET {PULLS}/1?x=1"], {TOKEN})
