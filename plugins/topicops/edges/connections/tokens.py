"""Tokens for a login by OAUTHBEARER: one source feeds both Kafka clients, and gets a new token before the old one ends.

Kinds and their order are those of Airflow's Kafka provider. No message contains a token, a secret, or a text of the
server, the library or the function that makes tokens; so no error of theirs becomes the cause of ours.

Source: airflow.providers.apache.kafka.hooks.base.KafkaBaseHook#_build_config (2.1.0).
"""

from __future__ import annotations

import base64
import json
import logging
import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache, partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from topicops.edges.connections.client_properties import TOKENS, TokenKind, msk_region, token_extensions, token_kind
from topicops.edges.connections.port_probe import reason_of, verified_tls
from topicops.edges.extras import require_extra
from topicops.edges.threads import run_in_thread
from topicops.model.errors import (
    CertificateError,
    ClusterError,
    ClusterUnreachableError,
    LoginRefusedError,
    TopicopsError,
)
from topicops.model.json_types import json_errors
from topicops.model.printable import address, printable

FETCH_S = 10.0
"""The longest wait for a token."""
RENEWED_AT = 0.5
"""Part of its life after which a token is replaced: before either client asks for another."""
TOLD = 0.8
"""Part of what is left of a life that librdkafka is told.

It asks for a token at 80 % of what it is told, up to 1 s late, and logs in anew at 90 % of what the broker tells it,
which is up to 1 s less than the life. Told the whole life, it would use the old token where 20 s or less are left.
"""
PAUSE_S = 2.0
"""Seconds until the next try after one that gave no token."""
LONGEST_LIFE_S = 10 * 366 * 86400.0
"""Seconds after which no token lives: a longer life is a time in milliseconds."""
_MOST_BYTES = 1 << 18
"""The longest answer of a token endpoint."""
_VALUE = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""Source: RFC 6750, section 2.1, b64token."""
_REFUSALS = frozenset({
    "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "unauthorized_client",
    "unsupported_grant_type",
})  # fmt: skip
"""Words that a token endpoint may say about a request. Source: RFC 6749, section 5.2."""
_LOGS = ("botocore", "google.auth", "httpcore", "httpx", "urllib3")
"""Libraries that log requests, in part with signatures, below the level WARNING."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    value: str = field(repr=False)
    expires_at: float
    """Seconds since 1970."""
    principal: str = ""
    """Name by which brokers usually know the bearer; empty if the token does not show one."""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class TokenSource:
    """Tokens of one login. ``fetch`` may hang or raise anything; ``whose`` names it in messages."""

    def __init__(self, whose: str, fetch: Callable[[], Token], *, clock: Callable[[], float] = time.time) -> None:
        self._whose, self._fetch, self._clock = whose, fetch, clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._next_try_at = 0.0
        self._problem: TopicopsError | None = None

    @property
    def principal(self) -> str:
        """Name in the latest token; empty without one."""
        return self._token.principal if self._token else ""

    def token(self) -> Token:
        """Return a token that is valid now. Raises ``ClusterError`` or ``MissingExtraError``; a call may take 10 s."""
        with self._lock:
            if self._clock() >= self._next_try_at:
                self._renew()
            if self._token is None or self._token.expires_at <= self._clock():
                raise self._problem or LoginRefusedError(f"{self._whose} gave a token that has expired")
            return self._token

    def for_librdkafka(self, _: str | None) -> tuple[str, float, str, dict[str, str]]:
        """Fill ``oauth_cb`` of confluent-kafka."""
        token, now = self.token(), self._clock()
        return token.value, now + TOLD * (token.expires_at - now), token.principal, dict(token.extensions)

    def _renew(self) -> None:
        """Replace the token; where none is given, the old one serves until its end."""
        future = run_in_thread(self._fetch)
        wait([future], FETCH_S)
        now = self._clock()
        error = future.exception() if future.done() else ClusterUnreachableError(_slow(self._whose))
        if error is None and (problem := _misfit(future.result(), now)):
            error = LoginRefusedError(f"{self._whose} gives {problem}")
        if error is None:
            self._token, self._problem = future.result(), None
            self._next_try_at = now + RENEWED_AT * (self._token.expires_at - now)
            return
        known = isinstance(error, TopicopsError)
        why = f"{self._whose} gives no token: it ended with {type(error).__name__}"
        self._problem = error if known else LoginRefusedError(why)  # type: ignore[assignment]
        self._next_try_at = now + PAUSE_S


def token_source(properties: Mapping[str, str]) -> TokenSource | None:
    """Return the source of these properties of a connection, the same for equal ones; None for another login."""
    kind = token_kind(properties)
    if kind is None:
        return None
    own = tuple(sorted((name, text) for name, text in properties.items() if name in TOKENS))
    return _shared(kind, msk_region(properties) if kind == "msk-iam" else "", own)


@lru_cache(maxsize=64)
def _shared(kind: TokenKind, region: str, own: tuple[tuple[str, str], ...]) -> TokenSource:
    for name in _LOGS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
    properties = dict(own)
    match kind:
        case "msk-iam":
            return TokenSource("the signer of Amazon MSK", partial(_of_msk, region))
        case "google":
            return TokenSource("Google's login", _of_google)
        case "callable":
            return TokenSource("the function of oauth_cb", partial(_of_callable, properties))
        case "oidc":
            return TokenSource(_endpoint(properties), partial(_of_endpoint, properties))


def _slow(whose: str) -> str:
    return f"{whose} gives no token within {FETCH_S:g} s"


def _misfit(token: Token, now: float) -> str:
    if not _VALUE.fullmatch(token.value):
        return "a token with characters that no token may have"
    if not math.isfinite(token.expires_at) or token.expires_at > now + LONGEST_LIFE_S:
        return "a token whose end is no time in seconds since 1970"
    return "" if token.expires_at > now else "a token that has expired; compare its clock with the clock here"


def _of_callable(properties: Mapping[str, str]) -> Token:
    """Call the function as librdkafka would: it returns token, end, and if it likes principal and extensions."""
    module, _, name = properties["oauth_cb"].rpartition(".")
    given: Any = getattr(import_module(module), name)(properties.get("sasl.oauthbearer.config"))
    if not isinstance(given, tuple) or len(given) < 2 or not isinstance(given[0], str) or _number(given[1]) is None:
        raise LoginRefusedError("the function of oauth_cb returns no (token, seconds since 1970 at which it ends)")
    principal = given[2] if len(given) > 2 else _principal_in(_claims(given[0]), properties)
    extensions = given[3] if len(given) > 3 else {}
    return Token(value=given[0], expires_at=float(given[1]), principal=principal, extensions=extensions)


def _of_msk(region: str) -> Token:
    require_extra("aws")
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    value, expires_at_ms = MSKAuthTokenProvider.generate_auth_token(region)
    return Token(value=value, expires_at=expires_at_ms / 1000)


def _of_google() -> Token:
    """Return what Google's brokers take for a token: an access token in the form of a JWT.

    Source: airflow.providers.google.cloud.hooks.managed_kafka.ManagedKafkaTokenProvider (22.8.0).
    """
    require_extra("google")
    import google.auth
    from google.auth.transport.requests import Request

    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    credentials.refresh(Request())
    expires_at = credentials.expiry.replace(tzinfo=UTC).timestamp()
    bearer = getattr(credentials, "service_account_email", "")
    if not bearer:
        raise LoginRefusedError("Google's login is of a person; Kafka's brokers want that of a service account")
    claims = {"exp": expires_at, "iss": "Google", "iat": time.time(), "scope": "kafka", "sub": bearer}
    header = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    parts = json.dumps(header), json.dumps(claims), credentials.token
    encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return Token(value=".".join(encoded), expires_at=expires_at, principal=bearer)


def _endpoint(properties: Mapping[str, str]) -> str:
    url = urlsplit(properties["sasl.oauthbearer.token.endpoint.url"])
    port = url.port or (443 if url.scheme == "https" else 80)
    return f"the token endpoint {printable(address(url.hostname or '', port))}"


def _of_endpoint(properties: Mapping[str, str]) -> Token:
    """Ask for a token with the client's own id and secret, which a request has as librdkafka sends them.

    Source: rd_kafka_oidc_token_refresh_cb of librdkafka 2.16 (grant client_credentials); RFC 6749, section 4.4.
    """
    where = _endpoint(properties)
    answer = _answer(properties, where)
    if isinstance(answer, ClusterError):
        raise answer
    status, body = answer
    said = _object(body)
    if status != 200:
        word = said.get("error")
        why = f"HTTP {status}{f', {word}' if isinstance(word, str) and word in _REFUSALS else ''}"
        if 400 <= status < 500 and status not in (408, 429):
            advice = "check sasl.oauthbearer.token.endpoint.url, its client.id, client.secret and scope"
            raise LoginRefusedError(f"{where} gives no token: {why}; {advice}")
        raise ClusterUnreachableError(f"{where} gives no token: {why}")
    value = said.get("access_token")
    if not isinstance(value, str):
        raise ClusterError(f"{where} gives no token: its answer is no JSON object with an access_token")
    claims = _claims(value)
    ends = [end for end in (_number(claims.get("exp")), _later(said.get("expires_in"))) if end is not None]
    if not ends:
        raise LoginRefusedError(
            f"{where} gives a token without an end: it has no exp, and the answer has no expires_in"
        )
    extensions = token_extensions(properties) or {}
    principal = _principal_in(claims, properties)
    return Token(value=value, expires_at=min(ends), principal=principal, extensions=extensions)


def _answer(properties: Mapping[str, str], where: str) -> tuple[int, bytes] | ClusterError:
    import httpx

    names = ("sasl.oauthbearer.client.{}", "sasl.oauthbearer.client.credentials.client.{}")
    login = [next(filter(None, (properties.get(n.format(part)) for n in names)), "") for part in ("id", "secret")]
    form = {"grant_type": "client_credentials", "scope": properties.get("sasl.oauthbearer.scope", "")}
    form = {name: text for name, text in form.items() if text}
    location = properties.get("https.ca.location")
    try:
        context = verified_tls(
            ca_file=None if location == "probe" else location, ca_pem=properties.get("https.ca.pem") or None
        )
    except (OSError, ValueError):
        return CertificateError("https.ca.location or https.ca.pem of the connection cannot be used; correct it")
    url = properties["sasl.oauthbearer.token.endpoint.url"]
    try:
        with (
            httpx.Client(verify=context, timeout=FETCH_S / 2, headers={"accept": "application/json"}) as client,
            client.stream("POST", url, auth=(login[0], login[1]), data=form) as answer,
        ):
            return answer.status_code, _first(_MOST_BYTES, answer.iter_bytes())
    except httpx.TimeoutException:
        return ClusterUnreachableError(f"{where}: no answer")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        cause = _root(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted: {cause.verify_message}"
            return CertificateError(f"{where}: {why}; compare https.ca.location of the connection")
        return ClusterUnreachableError(
            f"{where}: {reason_of(cause) if isinstance(cause, OSError) else 'its answer is no HTTP'}"
        )


def _first(most: int, parts: Iterable[bytes]) -> bytes:
    """Return so many bytes at most; a longer answer is cut, and so no JSON. Stops after ``FETCH_S``."""
    found, ends_at = b"", time.monotonic() + FETCH_S
    for part in parts:
        found += part
        if len(found) > most or time.monotonic() > ends_at:
            break
    return found[:most]


def _root(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _claims(token: object) -> Mapping[str, Any]:
    """Return what a JWT says, which nobody has checked here; empty for another token."""
    parts = token.split(".") if isinstance(token, str) else []
    if len(parts) != 3:
        return {}
    try:
        return _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        with json_errors():
            found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _principal_in(claims: Mapping[str, Any], properties: Mapping[str, str]) -> str:
    name = claims.get(properties.get("sasl.oauthbearer.sub.claim.name") or "sub")
    return name[:200] if isinstance(name, str) else ""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _later(seconds: object) -> float | None:
    """Return the time so many seconds from now; some endpoints write the number as text."""
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 12:
        seconds = int(seconds)
    found = _number(seconds)
    return None if found is None else time.time() + found
