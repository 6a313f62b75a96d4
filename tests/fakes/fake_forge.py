"""A forge for tests: pull requests in memory, behind the REST paths of GitHub and of GitLab, on the loopback interface.

Tests play the people (``open``, ``push``, ``review``, ``merge``) by its methods, and look at what was written
(``bodies``, ``check``, ``labels``). ``refusals``, ``refused``, ``page`` and ``delay_s`` make it answer badly.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from fakes.forges.github import GitHubPaths
from fakes.forges.gitlab import GitLabPaths
from fakes.forges.store import (
    BOT,
    PERSON,
    PERSONAL_TOKEN,
    REPOSITORY,
    TOKEN,
    FakeCheck,
    FakeComment,
    FakePullRequest,
    MergeMethod,
    NotFoundError,
    Request,
    Store,
)

__all__ = [
    "BOT",
    "PERSON",
    "PERSONAL_TOKEN",
    "REPOSITORY",
    "TOKEN",
    "FakeCheck",
    "FakeComment",
    "FakeForge",
    "FakePullRequest",
    "MergeMethod",
]


class FakeForge(Store):
    """A server, while the ``with`` block lasts."""

    def __init__(self, *, page: int = 100) -> None:
        super().__init__()
        self.page = page
        """The most entries of a page, whatever a request asks for."""
        self.refusals: list[tuple[int, Mapping[str, str]]] = []
        """Status and headers of the answers to the next requests, instead of true ones."""
        self.refusal: object = {"message": "refused by the test"}
        """The body of each of them."""
        self.answers: list[bytes] = []
        """The bodies of the next answers, instead of true ones."""
        self.refused: dict[str, int] = {}
        """The status of each request whose ``GET /path`` the pattern is found in."""
        self.delay_s = 0.0
        """How long each answer takes."""
        self.requests: list[str] = []
        """``GET /repos/…`` of each request, in order."""
        self.tokens: set[str] = set()
        """Those that came with the requests."""
        self.logins = {TOKEN: BOT, PERSONAL_TOKEN: PERSON}
        """The account of each token that is valid."""
        self._routes = {**GitHubPaths(self).routes(), **GitLabPaths(self).routes()}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def limit(self, times: int, *, retry_after_s: int = 0) -> None:
        """The next requests are too many."""
        self.refusals += [(429, {"Retry-After": str(retry_after_s)})] * times

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        forge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                """Nothing: tests look at ``requests``."""

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                time.sleep(forge.delay_s)
                status, headers, answer = forge._answered(self.command, self.path, dict(self.headers.items()), text)
                content = b"" if answer is None else json.dumps(answer).encode()
                content = forge.answers.pop(0) if forge.answers else content
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - http.server looks for these names

        return Handler

    def _answered(
        self, method: str, target: str, headers: Mapping[str, str], text: bytes
    ) -> tuple[int, Mapping[str, str], Any]:
        with self.lock:
            place = urlsplit(target)
            self.requests.append(f"{method} {target}")
            token = headers.get("Private-Token", headers.get("PRIVATE-TOKEN", ""))
            token = token or headers.get("Authorization", "").removeprefix("Bearer ")
            self.tokens.add(token)
            if self.refusals:
                status, more = self.refusals.pop(0)
                return status, more, self.refusal
            for pattern, status in self.refused.items():
                if re.search(pattern, f"{method} {target}"):
                    return status, {}, self.refusal
            if token not in self.logins:
                return 401, {}, {"message": "Bad credentials"}
            query = {name: values[-1] for name, values in parse_qs(place.query).items()}
            body = json.loads(text) if text else {}
            request = Request(method, place.path, query, body, self.logins[token])
            try:
                status, answer = self._route(request)
            except (NotFoundError, KeyError):
                return 404, {}, {"message": "Not Found"}
            if method == "GET" and isinstance(answer, list):
                return self._paged(request, answer)
            return status, {}, answer

    def _paged(self, request: Request, entries: list[Any]) -> tuple[int, Mapping[str, str], Any]:
        size = min(self.page, int(request.query.get("per_page", "30")))
        number = int(request.query.get("page", "1"))
        shown = entries[(number - 1) * size : number * size]
        headers = {}
        is_gitlab = request.path.startswith(("/projects/", "/groups/"))
        if is_gitlab:
            headers["X-Next-Page"] = str(number + 1) if number * size < len(entries) else ""
        if number * size < len(entries):
            query = "&".join(f"{name}={value}" for name, value in {**request.query, "page": number + 1}.items())
            headers["Link"] = f'<{self.url}{request.path}?{query}>; rel="next"'
        return 200, headers, shown

    def _route(self, request: Request) -> tuple[int, Any]:
        for pattern, methods in self._routes.items():
            if match := re.fullmatch(pattern, request.path):
                if request.method not in methods:
                    return 405, {"message": "Method Not Allowed"}
                return methods[request.method](request, *map(unquote, match.groups()))
        raise NotFoundError
