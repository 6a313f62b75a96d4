"""Python's TLS as librdkafka makes it of the same properties, for kafka-python and for the examination of a port."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from tempfile import NamedTemporaryFile

from topicops.edges.connections.port_probe import verified_tls
from topicops.model.errors import UsageError

SYSTEM_AUTHORITIES = "probe"
"""Librdkafka's word for them in ``ssl.ca.location``, and what it takes where nothing is written."""
OWN_CERTIFICATE = (
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
)


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """TLS with the authorities, the certificate and the checks that ``properties`` ask for.

    Raises:
        UsageError: A file or a text cannot be used; the message names the properties, and no value.
    """
    with _naming(properties, "ssl.ca.location", "ssl.ca.pem"):
        context = trusting(properties)
    with _naming(properties, *OWN_CERTIFICATE):
        _show_own_certificate(context, properties)
    with _naming(properties, "ssl.crl.location"):
        if revoked := properties.get("ssl.crl.location"):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    with _naming(properties, "ssl.cipher.suites"):
        if ciphers := properties.get("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
    return context


def trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    """TLS that checks the broker as ``properties`` ask. Raises ``OSError`` for authorities that cannot be read."""
    location = properties.get("ssl.ca.location")
    context = verified_tls(
        ca_file=None if location == SYSTEM_AUTHORITIES else location, ca_pem=properties.get("ssl.ca.pem")
    )
    # Librdkafka has several words for each; only those that surely switch a check off do so here.
    is_checked = properties.get("enable.ssl.certificate.verification", "").strip().lower() not in ("false", "f", "0")
    by_name = properties.get("ssl.endpoint.identification.algorithm", "").strip().lower() != "none"
    context.check_hostname = is_checked and by_name
    context.verify_mode = ssl.CERT_REQUIRED if is_checked else ssl.CERT_NONE
    return context


def _show_own_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    with ExitStack() as files:
        certificate, key = (files.enter_context(_file_of(part, properties)) for part in ("certificate", "key"))
        if certificate:
            # Never None: OpenSSL would ask for the password on the terminal.
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password", ""))


@contextmanager
def _file_of(part: str, properties: Mapping[str, str]) -> Iterator[str | None]:
    """The file that is named, or one for the text, which only this user can read and which is gone afterwards.

    Python reads certificate and key from files only.
    """
    text = properties.get(f"ssl.{part}.pem")
    if text is None:
        yield properties.get(f"ssl.{part}.location")
        return
    with NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name


@contextmanager
def _naming(properties: Mapping[str, str], *names: str) -> Iterator[None]:
    """Turn an error into one that names those of the properties that are written."""
    try:
        yield
    except (OSError, ValueError) as error:
        written = ", ".join(name for name in names if name in properties)
        reason = error.strerror if isinstance(error, OSError) and error.errno and error.strerror else "cannot be used"
        raise UsageError(
            f"the Kafka connection cannot be used: {written}: {reason}; correct it in the extra of the connection"
        ) from None  # the cause contains values
