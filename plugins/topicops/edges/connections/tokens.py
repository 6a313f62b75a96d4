"""Tokens for a login by OAUTHBEARER: one source feeds both Kafka clients, and replaces each token before its end.

No message contains a token, a secret, or a text of the server, the library or the function that makes tokens; so no
error of theirs becomes the cause of ours.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from topicops.edges.connections.client_properties import TOKENS, TokenKind, msk_region, token_extensions, token_kind
from topicops.edges.connections.port_probe import error_of, reason_of, untrusted, verified_tls
from topicops.edges.extras import require_extra
from topicops.edges.threads import run_in_thread
from topicops.model.errors import ClusterError, ClusterUnreachableError, LoginRefusedError, TopicopsError, UsageError
from topicops.model.json_types import json_errors
from topicops.model.printable import address

FETCH_S = 10.0
"""The longest wait for a token."""
RENEWED_AT = 0.5
"""Part of its life after which a token is replaced: before either client asks for another."""
TOLD = 0.8
"""Part of what is left of a life that librdkafka is told: it asks for a token at 80 % of that, up to 1 s late.

It logs in anew at 90 % of what the broker tells it, up to 1 s less than the life: for a short one with the old token.
"""
PAUSE_S = 2.0
"""Seconds until the next try after one that gave no token."""
_MOST_BYTES = 1 << 18
"""The longest answer of a token endpoint."""
_VALUE = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""Source: RFC 6750, section 2.1, b64token."""
_REFUSALS = ("invalid_client", "invalid_request", "invalid_scope", "unauthorized_client", "unsupported_grant_type")
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
        self.latest: Token | None = None
        self._next_try_at = 0.0
        self._problem: BaseException | None = None

    def token(self) -> Token:
        """Return a token that is valid now. Raises ``ClusterError`` or ``MissingExtraError``; a call may take 10 s."""
        with self._lock:
            if self._clock() >= self._next_try_at:
                self._renew()
            if self.latest is None or self.latest.expires_at <= self._clock():
                raise self._problem or LoginRefusedError(f"{self._whose} gave a token that has expired")
            return self.latest

    def for_librdkafka(self, _: str | None) -> tuple[str, float, str, dict[str, str]]:
        """Fill ``oauth_cb`` of confluent-kafka."""
        token, now = self.token(), self._clock()
        return token.value, now + TOLD * (token.expires_at - now), token.principal, dict(token.extensions)

    def _renew(self) -> None:
        """Replace the token; where none is given, the old one serves until its end."""
        future = run_in_thread(self._fetch)
        wait([future], FETCH_S)
        now, whose = self._clock(), self._whose
        slow = ClusterUnreachableError(f"{whose} gives no token within {FETCH_S:g} s")
        error = future.exception() if future.done() else slow
        if error is None and (problem := _misfit(future.result(), now)):
            error = LoginRefusedError(f"{whose} gives {problem}")
        elif error is not None and not isinstance(error, TopicopsError):
            error = LoginRefusedError(f"{whose} gives no token: it ended with {type(error).__name__}")
        self._problem, self._next_try_at = error, now + PAUSE_S
        if error is None:
            self.latest = future.result()
            self._next_try_at = now + RENEWED_AT * (self.latest.expires_at - now)


def token_source(properties: Mapping[str, str]) -> TokenSource | None:
    """Return the source of these properties of a connection, the same for equal ones; None for another login."""
    kind = token_kind(properties)
    if kind is None:
        return None
    return _shared(kind, msk_region(properties), tuple(sorted((n, t) for n, t in properties.items() if n in TOKENS)))


@lru_cache(maxsize=64)
def _shared(kind: TokenKind, region: str, own: tuple[tuple[str, str], ...]) -> TokenSource:
    for name in _LOGS:
        logging.getLogger(name).setLevel(max(logging.getLogger(name).level, logging.WARNING))
    properties = dict(own)  # in functions below, since the repr of a partial would show them
    match kind:
        case "msk-iam":
            return TokenSource("the signer of Amazon MSK", lambda: _of_msk(region))
        case "google":
            return TokenSource("Google's login", _of_google)
        case "callable":
            return TokenSource("the function of oauth_cb", lambda: _of_callable(properties))
        case "oidc":
            return TokenSource(_endpoint(properties), lambda: _of_endpoint(properties))


def _misfit(token: Token, now: float) -> str:
    if not _VALUE.fullmatch(token.value):
        return "a token with characters that no token may have"
    if not token.expires_at < 1e11:  # milliseconds, or no number
        return "a token whose end is no time in seconds since 1970"
    return "" if token.expires_at > now else "a token that has expired; compare its clock with the clock here"


def _of_callable(properties: Mapping[str, str]) -> Token:
    """Call the function as librdkafka would: it returns token, end, and if it likes principal and extensions."""
    module, _, name = properties["oauth_cb"].rpartition(".")
    given: Any = getattr(import_module(module), name)(properties.get("sasl.oauthbearer.config"))
    if not isinstance(given, tuple) or len(given) < 2 or not isinstance(given[0], str) or not _is_number(given[1]):
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
    parts = json.dumps({"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}), json.dumps(claims), str(credentials.token)
    encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return Token(value=".".join(encoded), expires_at=expires_at, principal=bearer)


def _endpoint(properties: Mapping[str, str]) -> str:
    url = urlsplit(properties["sasl.oauthbearer.token.endpoint.url"])
    return f"the token endpoint {address(url.hostname or '', url.port or (443 if url.scheme == 'https' else 80))}"


def _of_endpoint(properties: Mapping[str, str]) -> Token:
    """Ask for a token with the client's own id and secret, which a request has as librdkafka sends them.

    Source: rd_kafka_oidc_token_refresh_cb of librdkafka 2.16 (grant client_credentials); RFC 6749, section 4.4.
    """
    where = _endpoint(properties)
    answer = _answer(properties, where)
    if isinstance(answer, TopicopsError):
        raise answer
    status, said = answer[0], _object(answer[1])
    if status != 200:
        why = f"HTTP {status}" + (f", {said['error']}" if said.get("error") in _REFUSALS else "")
        if status not in (400, 401, 403, 404):
            raise ClusterUnreachableError(f"{where} gives no token: {why}")
        advice = "check sasl.oauthbearer.token.endpoint.url, its client.id, client.secret and scope"
        raise LoginRefusedError(f"{where} gives no token: {why}; {advice}")
    value = said.get("access_token")
    if not isinstance(value, str):
        raise ClusterError(f"{where} gives no token: its answer is no JSON object with an access_token")
    claims, lasts_s = _claims(value), said.get("expires_in")
    ends = [claims["exp"]] if _is_number(claims.get("exp")) else []
    if lasts_s and (_is_number(lasts_s) or str(lasts_s).isdecimal()):  # some write text
        ends.append(time.time() + float(lasts_s))
    if not ends:
        raise LoginRefusedError(f"{where} gives a token without an end: neither exp in it, nor expires_in beside it")
    extensions, principal = token_extensions(properties) or {}, _principal_in(claims, properties)
    return Token(value=value, expires_at=min(ends), principal=principal, extensions=extensions)


def _answer(properties: Mapping[str, str], where: str) -> tuple[int, bytes] | TopicopsError:
    """Return status and body; of a body that is too long or too late a part, which is no JSON."""
    import httpx

    names = ("sasl.oauthbearer.client.{}", "sasl.oauthbearer.client.credentials.client.{}")
    login = [next(filter(None, (properties.get(n.format(part)) for n in names)), "") for part in ("id", "secret")]
    scope, location = properties.get("sasl.oauthbearer.scope"), properties.get("https.ca.location")
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    url, body, ends_at = properties["sasl.oauthbearer.token.endpoint.url"], b"", time.monotonic() + FETCH_S
    try:
        context = verified_tls(ca_file=None if location == "probe" else location, ca_pem=properties.get("https.ca.pem"))
        with (
            httpx.Client(verify=context, timeout=FETCH_S / 2, headers={"accept": "application/json"}) as client,
            client.stream("POST", url, auth=(login[0], login[1]), data=form) as answer,
        ):
            for part in answer.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES or time.monotonic() > ends_at:
                    break
            return answer.status_code, body[:_MOST_BYTES]
    except httpx.TimeoutException:
        return ClusterUnreachableError(f"{where}: no answer")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        cause: BaseException = error
        while before := cause.__cause__ or cause.__context__:
            cause = before
        if isinstance(cause, ssl.SSLCertVerificationError):
            return error_of([untrusted(where, cause, "https.ca.location")], "")
        reason = reason_of(cause) if isinstance(cause, OSError) else "its answer is no HTTP"
        return ClusterUnreachableError(f"{where}: {reason}")
    except (OSError, ValueError):
        return UsageError("https.ca.location or https.ca.pem of the connection cannot be used; correct it")


def _claims(token: str) -> Mapping[str, Any]:
    """Return what a JWT says, which nobody has checked here; empty for another token."""
    parts = token.split(".")
    try:
        return _object(base64.urlsafe_b64decode(f"{parts[1]}==")) if len(parts) == 3 else {}
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
