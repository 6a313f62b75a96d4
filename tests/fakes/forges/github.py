"""The paths of GitHub's REST API over a store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from fakes.forges.store import (
    BOT,
    REPOSITORY,
    Answer,
    FakeCheck,
    FakeComment,
    FakePullRequest,
    Request,
    Routes,
    Store,
)
from topicops.model.pull_requests.forge import Review, ReviewVerdict

_STATES = {
    ReviewVerdict.APPROVED: "APPROVED",
    ReviewVerdict.CHANGES_REQUESTED: "CHANGES_REQUESTED",
    ReviewVerdict.DISMISSED: "DISMISSED",
    ReviewVerdict.COMMENTED: "COMMENTED",
}


_NO_ACCOUNT: Sequence[object] = (None, {})
"""The two forms of a person without an account."""


class GitHubPaths:
    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> Routes:
        repo = f"/repos/{re.escape(REPOSITORY)}"
        return {
            f"{repo}/pulls": {"GET": self._pulls},
            rf"{repo}/pulls/(\d+)": {"GET": self._whole_pull},
            rf"{repo}/pulls/(\d+)/files": {"GET": self._files},
            rf"{repo}/pulls/(\d+)/commits": {"GET": self._commits},
            rf"{repo}/pulls/(\d+)/reviews": {"GET": self._reviews},
            rf"{repo}/commits/(\w+)/pulls": {"GET": self._pulls_of},
            rf"{repo}/commits/(\w+)/check-runs": {"GET": self._checks},
            rf"{repo}/check-runs": {"POST": self._add_check},
            rf"{repo}/check-runs/(\d+)": {"PATCH": self._edit_check},
            rf"{repo}/issues/(\d+)/comments": {"GET": self._comments, "POST": self._add_comment},
            rf"{repo}/issues/comments/(\d+)": {"PATCH": self._edit_comment, "DELETE": self._store.remove_comment},
            rf"{repo}/issues/(\d+)/labels": {"POST": self._add_labels},
            rf"{repo}/issues/(\d+)/labels/(.+)": {"DELETE": self._remove_label},
            r"/orgs/([^/]+)/teams/([^/]+)/members": {"GET": self._members},
        }

    def _pulls(self, request: Request) -> Answer:
        """Newest first."""
        base = request.query.get("base")
        return 200, [self._pull(pull) for pull in reversed(self._store.open_pulls(base))]

    def _pulls_of(self, _: Request, commit: str) -> Answer:
        return 200, [self._pull(pull) for pull in self._store.pulls_of(commit)]

    def _pull(self, pull: FakePullRequest) -> dict[str, Any]:
        head_repository = f"{pull.author}/topics" if pull.is_from_fork else REPOSITORY
        return {
            "number": pull.number,
            "html_url": f"{self._store.url}/{REPOSITORY}/pull/{pull.number}",
            "title": pull.title,
            "state": "open" if pull.is_open else "closed",
            "user": _user(pull.author),
            "head": {"ref": "change", "sha": pull.head, "repo": {"full_name": head_repository}},
            "base": {"ref": pull.base, "sha": "0" * 40, "repo": {"full_name": REPOSITORY}},
            "merged_at": self._store.text(pull.merged_at) if pull.merged_at else None,
            # Of an open one this is the trial merge.
            "merge_commit_sha": pull.merge_commit or "f" * 40,
            "labels": [{"id": 1, "name": label} for label in sorted(pull.labels)],
        }

    def _files(self, _: Request, number: str) -> Answer:
        pull = self._store.pull(number)
        files: list[dict[str, Any]] = [{"filename": name, "status": "modified"} for name in sorted(pull.files)]
        for new, old in pull.renamed.items():
            files.append({"filename": new, "status": "renamed", "previous_filename": old})
        return 200, files

    def _whole_pull(self, _: Request, number: str) -> Answer:
        pull = self._store.pull(number)
        return 200, {**self._pull(pull), "commits": len(self._commits_of(pull))}

    def _commits(self, _: Request, number: str) -> Answer:
        return 200, self._commits_of(self._store.pull(number))[:250]

    def _commits_of(self, pull: FakePullRequest) -> list[dict[str, Any]]:
        """One of each committer, and those that no account has the address of."""
        people: list[Any] = [_user(person) for person in sorted({pull.author, *pull.committers})]
        said = {"message": pull.message}
        commits = [
            {"sha": pull.head, "commit": said, "author": user, "committer": _user("web-flow")} for user in people
        ]
        unknown = [
            {"sha": sha, "commit": {"message": "By nobody"}, "author": form, "committer": form}
            for sha, form in zip(pull.unknown_commits, cycle(_NO_ACCOUNT), strict=False)
        ]
        return [*commits, *unknown]

    def _reviews(self, _: Request, number: str) -> Answer:
        """A dismissal is no entry here: it changes the review that it ends."""
        shown: list[Review] = []
        for review in self._store.pull(number).reviews:
            if review.verdict is ReviewVerdict.DISMISSED:
                ended = [index for index, earlier in enumerate(shown) if earlier.reviewer == review.reviewer][-1:]
                for index in ended:
                    shown[index] = replace(shown[index], verdict=ReviewVerdict.DISMISSED)
            else:
                shown.append(review)
        found = [
            {
                "id": index,
                "user": _user(review.reviewer),
                "state": _STATES[review.verdict],
                "submitted_at": self._store.text(review.submitted_at),
                "commit_id": review.commit,
            }
            for index, review in enumerate(shown, 1)
        ]
        return 200, [*found, {"id": 0, "user": None, "state": "PENDING", "commit_id": None}]

    def _comments(self, _: Request, number: str) -> Answer:
        return 200, [self._comment_shown(comment) for comment in self._store.pull(number).comments]

    def _add_comment(self, request: Request, number: str) -> Answer:
        self._store.pull(number)
        if len(request.body["body"]) > 65_536:
            return 422, {"message": "Validation Failed"}
        return 201, self._comment_shown(self._store.comment(int(number), request.login, request.body["body"]))

    def _edit_comment(self, request: Request, comment_id: str) -> Answer:
        return 200, self._comment_shown(self._store.edited(comment_id, request.body["body"]))

    def _checks(self, request: Request, commit: str) -> Answer:
        name = request.query.get("check_name")
        found = [check for check in self._store.checks.get(commit, {}).values() if name in (None, check.name)]
        return 200, {"total_count": len(found), "check_runs": [_check(check) for check in found]}

    def _add_check(self, request: Request) -> Answer:
        if not request.login.endswith("[bot]"):
            return 403, {"message": "You must authenticate via a GitHub App."}
        return 201, self._kept_check(request, request.body["head_sha"], self._store.next_id())

    def _edit_check(self, request: Request, check_id: str) -> Answer:
        kept = [(commit, check) for commit, checks in self._store.checks.items() for check in checks.values()]
        commit, there = next((commit, check) for commit, check in kept if check.id == int(check_id))
        if there.app != request.login.removesuffix("[bot]"):
            return 403, {"message": "Resource not accessible by integration"}
        return 200, self._kept_check(request, commit, int(check_id))

    def _kept_check(self, request: Request, commit: str, check_id: int) -> dict[str, Any]:
        body, output = request.body, request.body["output"]
        check = FakeCheck(
            id=check_id,
            name=body["name"],
            result=body["conclusion"] if body["status"] == "completed" else body["status"],
            title=output["title"],
            summary=output["summary"],
            url=body.get("details_url", ""),
            app=request.login.removesuffix("[bot]"),
            external_id=body.get("external_id", ""),
        )
        self._store.checks.setdefault(commit, {})[check.name] = check
        return _check(check)

    def _add_labels(self, request: Request, number: str) -> Answer:
        self._store.pull(number).labels |= set(request.body["labels"])
        return 200, [{"id": 1, "name": label} for label in sorted(self._store.pull(number).labels)]

    def _remove_label(self, _: Request, number: str, label: str) -> Answer:
        self._store.pull(number).labels.remove(label)
        return 200, []

    def _members(self, request: Request, organisation: str, team: str) -> Answer:
        if request.login == BOT:
            return 403, {"message": "Resource not accessible by integration"}
        return 200, [_user(login) for login in sorted(self._store.teams[f"{organisation}/{team}"])]

    def _comment_shown(self, comment: FakeComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "user": _user(comment.author),
            "body": comment.body,
            "created_at": self._store.text(comment.created_at),
            "updated_at": self._store.text(comment.updated_at),
        }


def _user(login: str) -> dict[str, Any]:
    return {"login": login, "id": 1, "type": "Bot" if login.endswith("[bot]") else "User"}


def _check(check: FakeCheck) -> dict[str, Any]:
    app = {"id": 15368, "slug": check.app, "name": check.app}
    return {"id": check.id, "name": check.name, "external_id": check.external_id, "app": app}
