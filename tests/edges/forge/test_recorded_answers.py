"""The fake forge answers in the shapes of the real ones, and our readers take all that the real ones may send."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from topicops.edges.forge import github, gitlab
from topicops.testing.fake_forge import BOT, TOKEN, FakeForge

SHAPES = json.loads((Path(__file__).parents[2] / "data/forge-answers.json").read_text(encoding="utf-8"))
HEAD, MERGED = "a" * 40, "b" * 40
TYPES = {"integer": int, "string": str, "boolean": bool, "array": list, "any": object}
CHECK = {
    "name": "topicops",
    "head_sha": HEAD,
    "status": "completed",
    "conclusion": "neutral",
    "output": {"title": "t", "summary": "s"},
}
STATUS = {"state": "success", "name": "topicops", "description": "t"}
READERS: dict[str, Any] = {
    "pull request": github._Pull,
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
}
GITLAB_READERS: dict[str, Any] = {
    "merge request": gitlab._MergeRequest,
    "merge requests": list[gitlab._MergeRequest],
    "merge requests of a commit": list[gitlab._MergeRequest],
    "diffs": list[gitlab._Diff],
    "notes": list[gitlab._Note],
    "new note": gitlab._Note,
    "edited note": gitlab._Note,
    "members": list[gitlab._User],
    "user": gitlab._User,
}


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeForge]:
    with FakeForge() as fake:
        pull = fake.open(HEAD, ["topics/a.yaml"])
        pull.renamed, pull.labels = {"topics/new.yaml": "topics/old.yaml"}, {"topics:risky"}
        fake.push(1, HEAD, committer="carol")
        fake.open(HEAD)
        fake.merge(2, MERGED)
        fake.review(1, "alice")
        fake.comment(1, BOT, "ours")
        fake.teams["acme/shop"] = {"alice"}
        yield fake


def answer(fake: FakeForge, forge: str, name: str) -> Any:
    """What the fake answers to the request that the shape names, with this test's pull request in its path."""
    method, _, path = SHAPES[forge][name]["request"].partition(" ")
    comment = fake.pulls[1].comments[0].id
    for word, value in {
        "{owner}/{repo}": "acme/topics",
        "{pull_number}": "1",
        "{issue_number}": "1",
        "{comment_id}": str(comment),
        "{commit_sha}": MERGED,
        "{ref}": HEAD,
        "{org}/teams/{team_slug}": "acme/teams/shop",
        "{check_run_id}": str(fake.checks[HEAD]["topicops"].id) if HEAD in fake.checks else "0",
        "/projects/:id": "/projects/acme%2Ftopics",
        "/groups/:id": "/groups/acme%2Fshop",
        ":iid": "1",
        ":note_id": str(comment),
        ":sha": MERGED,
    }.items():
        path = path.replace(word, value)
    bodies = {
        "new check run": CHECK,
        "edited check run": CHECK,
        "labels": {"labels": ["topics:safe"]},
        "status": STATUS,
    }
    body = None if method == "GET" else bodies.get(name, {"body": "text"})
    with httpx.Client(base_url=fake.url, trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        return http.request(method, path, json=body).raise_for_status().json()


def places(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield each object that holds the last word of the path, and that word. Above a null there is nothing to hold."""
    word, _, rest = path.partition(".")
    if word.startswith("[]"):
        for entry in value:
            yield from places(entry, path.removeprefix("[]").removeprefix("."))
    elif word.endswith("[]"):
        for entry in value[word.removesuffix("[]")]:
            yield from places(entry, rest)
    elif not rest:
        yield value, word
    elif value[word] is not None:
        yield from places(value[word], rest)


FIELDS = [
    pytest.param(forge, name, path, shape, id=f"{forge}, {name}: {path}")
    for forge in ("github", "gitlab")
    for name, entry in SHAPES[forge].items()
    for path, shape in entry["fields"].items()
]


@pytest.mark.parametrize(("forge", "name", "path", "shape"), FIELDS)
def test_the_fake_answers_in_the_recorded_shape(fake: FakeForge, forge: str, name: str, path: str, shape: str) -> None:
    if name in ("check runs", "edited check run"):
        answer(fake, "github", "new check run")
    found = list(places(answer(fake, forge, name), path))

    assert found, "the fake has no example of it"
    kind = TYPES[shape.removesuffix("?").removesuffix("|null")]
    for holder, word in found:
        assert word in holder or shape.endswith("?")
        value = holder.get(word)
        assert isinstance(value, kind) or (value is None and ("|null" in shape or shape.endswith("?")))


@pytest.mark.parametrize(
    ("forge", "name", "path", "shape"), [f for f in FIELDS if "null" in f.values[3] or "?" in f.values[3]]
)
def test_our_readers_take_what_may_be_null_or_missing(
    fake: FakeForge, forge: str, name: str, path: str, shape: str
) -> None:
    reader = (READERS if forge == "github" else GITLAB_READERS)[name]
    whole = answer(fake, forge, name)
    without, with_null = copy.deepcopy(whole), copy.deepcopy(whole)
    for holder, word in places(without, path):
        if shape.endswith("?"):
            holder.pop(word, None)
    if "|null" in shape:  # the object that holds the field is what is null, where the path has one
        above = path.rpartition(".")[0]
        target = above if "login" in path else path
        for holder, word in places(with_null, target):
            holder[word] = None

    msgspec.convert(without, reader, strict=False)
    msgspec.convert(with_null, reader, strict=False)


def test_every_answer_that_we_read_is_recorded() -> None:
    assert READERS.keys() == SHAPES["github"].keys()
    assert GITLAB_READERS.keys() | {"status"} == SHAPES["gitlab"].keys()
