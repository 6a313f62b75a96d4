"""What the REST APIs of both forges share: pages, second tries, and refusals as one sentence without the token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from topicops.model.errors import ForgeError
from topicops.model.printable import first_line, printable

T = TypeVar("T")

PER_PAGE = 100
MOST_PAGES = 100
TRIES = 4
LONGEST_WAIT_S = 60.0
_WORTH_A_SECOND_TRY = frozenset({429, 502, 503, 504})
_ADVICE = {
    401: "the token is not valid: give another one",
    403: "the token may not do this: give it the rights that docs/how-to/review-in-pull-requests.md lists",
    404: "it is not there, or the token may not see it",
}


class Rest:
    """A session with one forge.

    Args:
        url: Where the API begins: ``https://api.github.com``.
        headers: With the token; they go to this server alone.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._sleep = url.rstrip("/"), sleep
        # A redirect is not followed, so that no other server gets the token.
        self._http = httpx.Client(headers=dict(headers), timeout=30.0, follow_redirects=False)

    def get(self, path: str, kind: type[T], **parameters: str | int) -> T:
        """One answer. Raises ``ForgeError``."""
        return self._read(self._answer("GET", self._url + path, params=parameters), kind)

    def pages(self, path: str, kind: type[T], **parameters: str | int) -> Iterator[T]:
        """Yield the items of all pages. Raises ``ForgeError``, also for more pages than any pull request has."""
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
        """Change something, once: whether a request that got no answer took effect is not known."""
        return self._read(self._answer(method, self._url + path, json=body), kind)

    def exists(self, path: str) -> bool:
        """Whether a thing is there. Raises ``ForgeError`` for every other refusal."""
        return self._tried("GET", self._url + path, {}).status_code != 404

    def remove(self, path: str) -> None:
        """Delete a thing; one that is gone already is no error."""
        answer = self._tried("DELETE", self._url + path, {})
        if answer.status_code != 404:
            self._require_success("DELETE", path, answer)

    def _next(self, answer: httpx.Response) -> str | None:
        """The address of the next page, which must be on the same server."""
        following = answer.links.get("next", {}).get("url")
        if following is None:
            return None
        if urlsplit(following)[:2] != urlsplit(self._url)[:2]:
            raise ForgeError(f"the forge names a next page on another server: {printable(following)[:200]}")
        return following

    def _answer(self, method: str, url: str, **content: object) -> httpx.Response:
        answer = self._tried(method, url, content)
        self._require_success(method, urlsplit(url).path, answer)
        return answer

    def _tried(self, method: str, url: str, content: Mapping[str, object]) -> httpx.Response:
        """The answer; what only reads is asked again where that may help."""
        waited = 0.0
        for attempt in range(1, TRIES + 1):
            is_last = attempt == TRIES or method != "GET"
            try:
                answer = self._http.request(method, url, **content)  # type: ignore[arg-type]
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if is_last:
                    path = urlsplit(url).path
                    raise ForgeError(f"{self._url} does not answer: {method} {path}: {first_line(error)}") from error
                wait = 2.0**attempt
            else:
                if is_last or not _is_worth_a_second_try(answer):
                    return answer
                wait = _wait_of(answer, attempt)
            waited += wait
            if waited > LONGEST_WAIT_S:
                raise ForgeError(f"{self._url} takes no more requests of this token now: {method}; try again later")
            self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _require_success(self, method: str, path: str, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        status = answer.status_code
        said, advice = printable(_message(answer))[:300], _ADVICE.get(status, "")
        raise ForgeError(f"{method} {path}: {status} {said}{f'; {advice}' if advice else ''}")

    def _read(self, answer: httpx.Response, kind: type[T]) -> T:
        if kind is type(None):
            return None
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            request = answer.request
            raise ForgeError(
                f"{request.method} {request.url.path}: the answer is not that of a forge's API: {first_line(error)}"
            ) from error


def _is_worth_a_second_try(answer: httpx.Response) -> bool:
    is_limit = answer.status_code == 403 and ("retry-after" in answer.headers or _is_used_up(answer))
    return is_limit or answer.status_code in _WORTH_A_SECOND_TRY


def _is_used_up(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("x-ratelimit-remaining") == "0")


def _wait_of(answer: httpx.Response, attempt: int) -> float:
    """Seconds, as the forge asks; else twice as long each time."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 6 else 2.0**attempt


def _message(answer: httpx.Response) -> str:
    """What the forge says about its refusal: GitHub in ``message``, GitLab in ``message`` or ``error``."""
    try:
        found = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return answer.reason_phrase
    if isinstance(found, dict):
        return str(found.get("message") or found.get("error_description") or found.get("error") or answer.reason_phrase)
    return answer.reason_phrase
