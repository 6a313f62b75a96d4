"""The fake forge answers in the shapes of the real ones, and our readers take all that the real ones may send."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import httpx
import msgspec
import pytest

from fixtures.fake_forge import BOT, PERSONAL_TOKEN, TOKEN, FakeForge
from topicops.features.pull_requests.edges import github, gitlab

SHAPES = json.loads((Path(__file__).with_name("forge-answers.json")).read_text(encoding="utf-8"))
HEAD, MERGED = "a" * 40, "b" * 40
TYPES: Mapping[str, type] = {"integer": int, "string": str, "boolean": bool, "array": list, "object": dict}
READERS: Mapping[str, Mapping[str, Any]] = {
    "github": {
        "pull request": github._WholePull,
        "pull requests": list[github._Pull],
        "pull requests of a commit": list[github._Pull],
        "files": list[github._File],
        "commits": list[github._Commit],
        "reviews": list[github._Review],
        "comments": list[github._IssueComment],
        "new comment": github._IssueComment,
        "edited comment": github._IssueComment,
        "check runs": github._CheckRuns,
        "new check run": github._CheckRun,
        "edited check run": github._CheckRun,
        "labels": list[github._Label],
        "members": list[github._User],
    },
    "gitlab": {
        "merge request": gitlab._MergeRequest,
        "merge requests": list[gitlab._MergeRequest],
        "merge requests of a commit": list[gitlab._MergeRequest],
        "diffs": list[gitlab._Diff],
        "approvals": gitlab._Approvals,
        "notes": list[gitlab._Note],
        "new note": gitlab._Note,
        "edited note": gitlab._Note,
        "status": None,
        "members": list[gitlab._User],
        "user": gitlab._User,
        "committers": gitlab._GraphAnswer,
    },
}
"""None: only whether the request was accepted is read."""
REQUESTS = [pytest.param(forge, name, id=f"{forge}, {name}") for forge in READERS for name in READERS[forge]]
CHECK = {
    "name": "topicops",
    "head_sha": HEAD,
    "status": "completed",
    "conclusion": "neutral",
    "output": {"title": "t", "summary": "s"},
}
BODIES = {
    "new check run": CHECK,
    "edited check run": CHECK,
    "labels": {"labels": ["topics:safe"]},
    "status": {"state": "success", "name": "topicops", "description": "t"},
    "committers": {"query": gitlab._COMMITTERS, "variables": {"project": "acme/topics", "number": "1"}},
}


@pytest.fixture(scope="module")
def answers() -> Iterator[Mapping[tuple[str, str], Any]]:
    """Yield the answer of the fake to each request, by forge and name."""
    with FakeForge() as fake, httpx.Client(base_url=fake.url, trust_env=False, verify=False) as http:
        pull = fake.open(HEAD, ["topics/a.yaml"])
        pull.renamed, pull.labels = {"topics/new.yaml": "topics/old.yaml"}, {"topics:risky"}
        fake.push(1, HEAD, committer="carol")
        fake.merge(fake.open(HEAD).number, MERGED)
        pull.labels = fake.pulls[2].labels = {"topics:risky"}
        fake.review(1, "alice")
        fake.comment(1, BOT, "ours")
        fake.teams["acme/shop"] = {"alice"}
        http.post("/repos/acme/topics/check-runs", json=CHECK, headers={"Authorization": f"Bearer {TOKEN}"})
        yield {
            (forge, name): _answer(http, fake, name, SHAPES[forge][name]["request"])
            for forge, named in READERS.items()
            for name in named
        }


def _answer(http: httpx.Client, fake: FakeForge, name: str, request: str) -> Any:
    """Return the answer to a request of the recorded form, with this test's pull request in its path."""
    method, _, path = request.partition(" ")
    comment = str(fake.pulls[1].comments[0].id)
    for word, value in {
        "{owner}/{repo}": "acme/topics",
        "{pull_number}": "1",
        "{issue_number}": "1",
        "{comment_id}": comment,
        "{commit_sha}": MERGED,
        "{ref}": HEAD,
        "{org}/teams/{team_slug}": "acme/teams/shop",
        "{check_run_id}": str(fake.checks[HEAD]["topicops"].id),
        "/projects/:id": "/projects/acme%2Ftopics",
        "/groups/:id": "/groups/acme%2Fshop",
        ":iid": "1",
        ":note_id": comment,
        ":sha": MERGED,
    }.items():
        path = path.replace(word, value)
    http.headers["Authorization"] = f"Bearer {PERSONAL_TOKEN if '/teams/' in path else TOKEN}"
    body = None if method == "GET" else BODIES.get(name, {"body": "text"})
    return http.request(method, path, json=body).raise_for_status().json()


def places(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield each object that holds the last word of the path, and that word. Above a null there is nothing to hold."""
    word, _, rest = path.partition(".")
    inner = value if word == "[]" else (value or {}).get(word.removesuffix("[]"), [] if word.endswith("[]") else None)
    if word.endswith("[]"):
        for entry in inner:
            yield from places(entry, rest)
    elif not rest:
        yield value, word
    elif inner is not None:
        yield from places(inner, rest)


def read_fields(kind: Any, above: str = "") -> Iterator[str]:
    """Yield the path of each field that a reader reads, as the recorded shapes write it."""
    if get_origin(kind) is list:
        yield from read_fields(get_args(kind)[0], f"{above}[]")
    elif get_args(kind):
        for one in get_args(kind):
            yield from read_fields(one, above)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            path = f"{above}.{field.encode_name}" if above else field.encode_name
            yield path
            yield from read_fields(field.type, path)


@pytest.mark.parametrize(("forge", "name"), REQUESTS)
def test_the_fake_answers_in_the_recorded_shape(answers: Mapping[Any, Any], forge: str, name: str) -> None:
    for path, shape in SHAPES[forge][name]["fields"].items():
        found = list(places(answers[forge, name], path))
        assert found, f"the fake has no example of {path}"
        kind = TYPES[shape.removesuffix("?").removesuffix("|null")]
        for holder, word in found:
            value = holder.get(word)
            assert word in holder or shape.endswith("?"), path
            assert isinstance(value, kind) or (value is None and ("|null" in shape or shape.endswith("?"))), path


@pytest.mark.parametrize(("forge", "name"), REQUESTS)
def test_our_readers_take_what_may_be_null_or_missing(answers: Mapping[Any, Any], forge: str, name: str) -> None:
    reader = READERS[forge][name]
    for path, shape in SHAPES[forge][name]["fields"].items() if reader else ():
        without, with_null = copy.deepcopy(answers[forge, name]), copy.deepcopy(answers[forge, name])
        for holder, word in places(without, path) if shape.endswith("?") else ():
            holder.pop(word, None)
        for holder, word in places(with_null, path) if "|null" in shape else ():
            holder[word] = None
        msgspec.convert(without, reader, strict=False)
        msgspec.convert(with_null, reader, strict=False)


@pytest.mark.parametrize(("forge", "name"), REQUESTS)
def test_every_field_that_we_read_is_recorded(forge: str, name: str) -> None:
    assert set(read_fields(READERS[forge][name])) <= SHAPES[forge][name]["fields"].keys()


def test_every_request_that_we_send_is_recorded() -> None:
    assert {forge: named.keys() for forge, named in READERS.items()} == {
        forge: SHAPES[forge].keys() for forge in ("github", "gitlab")
    }
