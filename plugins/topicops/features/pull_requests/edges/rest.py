"""What the REST APIs of both forges share: pages, second tries, and refusals as one sentence without the token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from ssl import SSLContext
from typing import Annotated, Any, TypeVar

import httpx
import msgspec

from topicops.features.pull_requests.edges.forge import ForgeError
from topicops.model.printable import first_line, printable
from topicops.model.specs.spellings import in_utc

T = TypeVar("T")

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; one without is no answer of a forge."""
PER_PAGE = 100
MOST_PAGES = 100
TRIES = 4
LONGEST_WAIT_S = 60.0
"""Seconds for one request with all its tries."""
_PASSES = frozenset({502, 503, 504})
_ADVICE = {
    401: "the token is not valid: give another one",
    403: "the token may not do this: give it the rights that docs/how-to/review-in-pull-requests.md lists",
    404: "it is not there, or the token may not see it",
}


def utc(moment: datetime) -> datetime:
    """Return the same time in UTC. Raises ``ForgeError`` for one that no review or comment has."""
    try:
        return in_utc(moment)
    except ValueError as error:
        raise ForgeError(f"the forge gave a time that cannot be: {error}") from error


def checked_length(body: str, most: int, forge: str) -> str:
    """Give the text of a comment back. Raises ``ForgeError`` if it has more characters than the forge takes."""
    if len(body) > most:
        raise ForgeError(f"the comment has {len(body)} characters, and {forge} takes {most}")
    return body


class Rest:
    """A session with one forge; every method raises ``ForgeError``.

    Args:
        url: Where the API begins: ``https://api.github.com``.
        headers: With the token; they go to this server alone.
        token: Is blotted out in all messages.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], *, token: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._url, self._token, self._sleep = url.rstrip("/"), token, sleep
        # No redirect is followed, so that no other server gets the token.
        self._http = httpx.Client(
            headers=dict(headers), timeout=30.0, follow_redirects=False, verify=_authorities(), trust_env=True
        )

    def get(self, path: str, kind: type[T], **parameters: str | int) -> T:
        return self._read(self._answer("GET", self._url + path, params=parameters), kind)

    def pages(self, path: str, kind: type[T], **parameters: str | int) -> Iterator[T]:
        """Yield the items of all pages; more pages than any pull request has are an error."""
        url: str | None = self._url + path
        given: Mapping[str, str | int] | None = {**parameters, "per_page": PER_PAGE}
        for _ in range(MOST_PAGES):
            if url is None:
                return
            answer = self._answer("GET", url, params=given)
            yield from self._read(answer, list[kind])  # type: ignore[valid-type]
            url, given = self._next(answer), None
        raise ForgeError(f"GET {path}: more than {MOST_PAGES} pages")

    def send(self, method: str, path: str, kind: type[T], body: Mapping[str, object] | None = None) -> T:
        """Change something; sent again only after a refusal for too many requests, which took no effect."""
        return self._read(self._answer(method, self._url + path, json=body), kind)

    def remove(self, path: str) -> None:
        """Delete a thing; one that is gone already is no error."""
        answer = self._tried("DELETE", self._url + path, {})
        if answer.status_code != 404:
            self._require_success("DELETE", answer)

    def _next(self, answer: httpx.Response) -> str | None:
        """Find the address of the next page: GitLab counts, GitHub names it. It must be on the same server."""
        number = answer.headers.get("x-next-page")
        if number is not None:
            return str(answer.request.url.copy_set_param("page", number)) if number.isdecimal() else None
        following = answer.links.get("next", {}).get("url")
        if following and not following.startswith(str(httpx.URL(self._url).join("/"))):
            raise ForgeError(
                f"{self._url} sends us to another server, which must not get the token: {_shown(following)}"
            )
        return following

    def _answer(self, method: str, url: str, **content: object) -> httpx.Response:
        answer = self._tried(method, url, content)
        self._require_success(method, answer)
        return answer

    def _tried(self, method: str, url: str, content: Mapping[str, object]) -> httpx.Response:
        """Ask, and ask again where that may help: after a limit, and where the request only reads."""
        spent_s = 0.0
        for attempt in range(1, TRIES + 1):
            started, wait, is_last = time.monotonic(), 2.0**attempt, attempt == TRIES
            try:
                answer = self._http.request(method, url, **content)  # type: ignore[arg-type]
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                spent_s += time.monotonic() - started + wait
                if is_last or method != "GET" or spent_s > LONGEST_WAIT_S:
                    raise ForgeError(self._without_token(self._unanswered(method, url, error))) from error
            else:
                wait = _wait_of(answer, wait)
                is_worth_it = _is_limit(answer) or (method == "GET" and answer.status_code in _PASSES)
                spent_s += time.monotonic() - started + wait
                if is_last or not is_worth_it or spent_s > LONGEST_WAIT_S:
                    return answer
            self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _unanswered(self, method: str, url: str, error: Exception) -> str:
        said, path = first_line(error), _shown(url.removeprefix(self._url))
        advice = "; SSL_CERT_FILE names the file of a company's own authority" if "CERTIFICATE_VERIFY" in said else ""
        return f"{self._url} does not answer: {method} {path}: {_shown(said)}{advice}"

    def _require_success(self, method: str, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        said, advice = _shown(self._without_token(_message(answer))), _advice(answer)
        path = _shown(answer.request.url.path)
        raise ForgeError(f"{method} {path}: {answer.status_code} {said}{f'; {advice}' if advice else ''}")

    def _read(self, answer: httpx.Response, kind: type[T]) -> T:
        if kind is type(None):
            return None
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            asked = f"{answer.request.method} {_shown(answer.request.url.path)}"
            raise ForgeError(f"{asked}: the answer is not that of a forge's API: {first_line(error)}") from error

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "***") if self._token else text


@cache
def _authorities() -> SSLContext:
    """Read those that certifi brings, or ``SSL_CERT_FILE`` names; that takes longer than a request."""
    return httpx.create_ssl_context(trust_env=True)


def _is_limit(answer: httpx.Response) -> bool:
    """Say whether the forge refused the request unread, because there were too many."""
    if answer.status_code != 403:
        return answer.status_code == 429
    is_named = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return is_named or "rate limit" in _message(answer).lower()


def _wait_of(answer: httpx.Response, otherwise: float) -> float:
    """Give the seconds that the forge asks for."""
    after, reset = (_number(answer.headers.get(name, "")) for name in ("retry-after", "x-ratelimit-reset"))
    if after is not None:
        return after
    if not _is_limit(answer) or reset is None:
        return otherwise
    try:
        now = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        now = time.time()
    return max(reset - now, otherwise)


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _advice(answer: httpx.Response) -> str:
    if answer.is_redirect:
        return "the repository has another name now: give that one"
    if _is_limit(answer):
        return f"there were too many requests: try again in {_wait_of(answer, LONGEST_WAIT_S):.0f} s"
    if answer.status_code == 403 and (needed := answer.headers.get("x-accepted-github-permissions")):
        return f"the token lacks a right: {_shown(needed)}"
    if answer.status_code >= 500:
        return "try again later"
    return _ADVICE.get(answer.status_code, "")


def _message(answer: httpx.Response) -> str:
    """Read what the forge says: GitHub in ``message`` and ``errors``, GitLab in ``message`` or ``error``."""
    try:
        found = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return answer.reason_phrase
    said = found.get("message") or found.get("error_description") or found.get("error") or answer.reason_phrase
    details = found.get("errors")
    more = [entry.get("message") or entry.get("code") for entry in details or () if isinstance(entry, dict)]
    return ": ".join([str(said), *(str(text) for text in more if text)])


def _shown(text: str) -> str:
    return printable(text)[:300]
