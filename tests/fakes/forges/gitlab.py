"""The paths of GitLab's REST API over a store, and the one question of GraphQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fakes.forges.store import (
    REPOSITORY,
    Answer,
    FakeCheck,
    FakeComment,
    FakePullRequest,
    Request,
    Routes,
    Store,
)
from topicops.model.pull_requests.forge import ReviewVerdict

_NOTES = {
    ReviewVerdict.APPROVED: "approved this merge request",
    ReviewVerdict.DISMISSED: "unapproved this merge request",
    ReviewVerdict.CHANGES_REQUESTED: "requested changes",
}


class GitLabPaths:
    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> Routes:
        project = "/projects/acme%2Ftopics"
        return {
            "/user": {"GET": lambda request: (200, _user(request.login))},
            "/graphql": {"POST": self._committers},
            f"{project}/merge_requests": {"GET": self._requests},
            rf"{project}/merge_requests/(\d+)": {"GET": self._one_request, "PUT": self._labels},
            rf"{project}/merge_requests/(\d+)/approvals": {"GET": self._approvals},
            rf"{project}/merge_requests/(\d+)/diffs": {"GET": self._diffs},
            rf"{project}/merge_requests/(\d+)/notes": {"GET": self._notes, "POST": self._add_note},
            rf"{project}/merge_requests/\d+/notes/(\d+)": {
                "PUT": self._edit_note,
                "DELETE": self._store.remove_comment,
            },
            rf"{project}/repository/commits/(\w+)/merge_requests": {"GET": self._requests_of},
            rf"{project}/statuses/(\w+)": {"POST": self._status},
            r"/groups/([^/]+)/members/all": {"GET": self._members},
        }

    def _requests(self, request: Request) -> Answer:
        found = self._store.open_pulls(request.query.get("target_branch"))
        return 200, [self._request(pull) for pull in found]

    def _one_request(self, _: Request, number: str) -> Answer:
        return 200, self._request(self._store.pull(number))

    def _requests_of(self, _: Request, commit: str) -> Answer:
        return 200, [self._request(pull) for pull in self._store.pulls_of(commit)]

    def _request(self, pull: FakePullRequest) -> dict[str, Any]:
        return {
            "id": pull.number + 1000,
            "iid": pull.number,
            "web_url": f"{self._store.url}/{REPOSITORY}/-/merge_requests/{pull.number}",
            "title": pull.title,
            "state": "merged" if pull.merge_commit else "closed" if pull.is_closed else "opened",
            "target_branch": pull.base,
            "source_project_id": 8 if pull.is_from_fork else 7,
            "target_project_id": 7,
            "sha": pull.head,
            "author": _user(pull.author),
            "merge_commit_sha": pull.merge_commit if pull.merge_method == "merge" else None,
            "squash_commit_sha": pull.merge_commit if pull.merge_method == "squash" else None,
            "labels": sorted(pull.labels),
            "references": {
                "short": f"!{pull.number}",
                "relative": f"!{pull.number}",
                "full": f"{REPOSITORY}!{pull.number}",
            },
        }

    def _approvals(self, _: Request, number: str) -> Answer:
        approvers = self._store.pull(number).approvers.items()
        return 200, {
            "approved_by": [{"user": _user(who), "approved_at": self._store.text(at)} for who, at in approvers]
        }

    def _committers(self, request: Request) -> Answer:
        """The one question of GraphQL that it knows."""
        asked = request.body["variables"]
        pull = self._store.pulls.get(int(asked["number"])) if asked["project"] == REPOSITORY else None
        if "committers" not in request.body["query"] or pull is None:
            return 200, {"data": {"project": None}}
        people = [{"username": login} for login in sorted(pull.committers)]
        connection = {"nodes": people, "pageInfo": {"hasNextPage": False}}
        return 200, {"data": {"project": {"mergeRequest": {"committers": connection}}}}

    def _labels(self, request: Request, number: str) -> Answer:
        pull = self._store.pull(number)
        pull.labels |= set(filter(None, request.body.get("add_labels", "").split(",")))
        pull.labels -= set(request.body.get("remove_labels", "").split(","))
        return 200, self._request(pull)

    def _diffs(self, _: Request, number: str) -> Answer:
        pull = self._store.pull(number)
        pairs = [(name, name) for name in sorted(pull.files)] + [(old, new) for new, old in pull.renamed.items()]
        return 200, [{"old_path": old, "new_path": new, "renamed_file": old != new} for old, new in pairs]

    def _notes(self, _: Request, number: str) -> Answer:
        pull = self._store.pull(number)
        notes = [self._note(comment) for comment in pull.comments]
        notes += [
            self._system_note(self._store.next_id(), review.reviewer, _NOTES[review.verdict], review.submitted_at)
            for review in pull.reviews
            if review.verdict in _NOTES
        ]
        notes += [self._system_note(self._store.next_id(), p, "added 1 commit", at) for p, at in pull.pushes]
        return 200, sorted(notes, key=lambda note: str(note["created_at"]))

    def _add_note(self, request: Request, number: str) -> Answer:
        self._store.pull(number)
        return 201, self._note(self._store.comment(int(number), request.login, request.body["body"]))

    def _edit_note(self, request: Request, comment_id: str) -> Answer:
        return 200, self._note(self._store.edited(comment_id, request.body["body"]))

    def _status(self, request: Request, commit: str) -> Answer:
        body = request.body
        if len(body["description"]) > 255:
            return 400, {"message": {"description": ["is too long (maximum is 255 characters)"]}}
        check = FakeCheck(
            id=self._store.next_id(),
            name=body["name"],
            result=body["state"],
            title=body["description"],
            url=body.get("target_url", ""),
        )
        self._store.checks.setdefault(commit, {})[check.name] = check
        shown = {"id": check.id, "sha": commit, "status": check.result, "name": check.name}
        return 201, {**shown, "description": check.title}

    def _members(self, _: Request, group: str) -> Answer:
        return 200, [_user(login) for login in sorted(self._store.teams[group])]

    def _note(self, comment: FakeComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "body": comment.body,
            "author": _user(comment.author),
            "created_at": self._store.text(comment.created_at),
            "updated_at": self._store.text(comment.updated_at),
            "system": False,
        }

    def _system_note(self, note_id: int, author: str, body: str, at: datetime) -> dict[str, Any]:
        return {
            "id": note_id,
            "body": body,
            "author": _user(author),
            "created_at": self._store.text(at),
            "updated_at": self._store.text(at),
            "system": True,
        }


def _user(login: str) -> dict[str, Any]:
    return {"id": 1, "username": login, "name": login, "state": "active"}
