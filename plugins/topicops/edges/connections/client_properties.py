"""Librdkafka's properties by what they are to the two Kafka clients of a run: used, ignored, or refused.

A property counts until a table below says that it does not. Both clients get only what counts, so that neither
connects in a way that the other one cannot.

Source: librdkafka's own list (``rd_kafka_conf_properties_show``, 2.16), in which C is a consumer's and P a producer's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from topicops.model.printable import printable


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KAFKA_PYTHON: Mapping[str, str] = {
    "bootstrap.servers": "bootstrap_servers",
    "client.dns.lookup": "client_dns_lookup",
    "metadata.broker.list": "bootstrap_servers",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
}
"""The name that kafka-python has for a property."""

TLS = _names(
    """
    enable.ssl.certificate.verification ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.cipher.suites ssl.crl.location ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password
    ssl.key.pem
    """
)
"""TLS settings that both clients need; kafka-python takes them as one Python object."""

LIBRDKAFKA_ALONE = _names(
    """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms broker.address.family
    broker.address.ttl broker.version.fallback connections.max.idle.ms enable.metrics.push
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms
    """
)
"""Settings of how librdkafka connects. Kafka-python has its own times, and tries each address of a host."""

TOKENS = _names(
    """
    enable.sasl.oauthbearer.unsecure.jwt https.ca.location https.ca.pem oauth_cb oauthbearer_token_refresh_cb
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    """
)
"""Settings for a login by token. They mean nothing without one."""

KERBEROS = _names(
    """
    sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal
    sasl.kerberos.service.name
    """
)
"""Settings for a login by Kerberos. They mean nothing without one."""

CONSUMERS = _names(
    """
    auto.commit.enable auto.commit.interval.ms auto.offset.reset check.crcs consume.callback.max.messages consume_cb
    coordinator.query.interval.ms enable.auto.commit enable.auto.offset.store enable.partition.eof
    fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type group.remote.assignor
    heartbeat.interval.ms isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records offset.store.method offset.store.path offset.store.sync.interval.ms offset_commit_cb on_commit
    partition.assignment.strategy queued.max.messages.kbytes queued.min.messages rebalance_cb session.timeout.ms
    share.acknowledgement.mode value.deserializer
    """
)

PRODUCERS = _names(
    """
    acks batch.num.messages batch.size compression.codec compression.level compression.type
    delivery.report.only.error delivery.timeout.ms dr_cb dr_msg_cb enable.gapless.guarantee enable.idempotence
    key.serializer linger.ms message.send.max.retries message.timeout.ms msg_order_cmp on_delivery partitioner
    partitioner_cb produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queuing.strategy request.required.acks request.timeout.ms
    retries sticky.partitioning.linger.ms transaction.timeout.ms transactional.id value.serializer
    """
)

TUNING = _names(
    """
    allow.auto.create.topics background_event_cb builtin.features client.id client.rack closesocket_cb connect_cb
    debug default.topic.config default_topic_conf enable.random.seed enabled_events error_cb interceptors
    internal.termination.signal log.connection.close log.queue log.thread.name log_cb log_level logger max.in.flight
    max.in.flight.requests.per.connection message.copy.max.bytes message.max.bytes metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy opaque open_cb receive.message.max.bytes
    reconnect.backoff.jitter.ms resolve_cb retry.backoff.max.ms retry.backoff.ms socket.blocking.max.ms
    socket.max.fails socket_cb statistics.interval.ms stats_cb throttle_cb topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
    """
)
"""Buffers, repetitions, logs and callbacks, and what a run sets itself. ``topic.blacklist`` would hide topics."""

IGNORED = CONSUMERS | PRODUCERS | TUNING

_OF_JAVA = "is a property of Java clients: "
_PEM_OWN = "write certificate and key as PEM, and name the files as ssl.certificate.location and ssl.key.location"
_PEM_AUTHORITIES = "write the authorities as PEM to a file, and name it as ssl.ca.location"
_NO_COUNTERPART = "has no counterpart in the second client (kafka-python): take it out"
INSTEAD: Mapping[str, str] = {
    "plugin.library.paths": "loads other programs into this one: take it out",
    "sasl.client.callback.handler.class": f"{_OF_JAVA}take it out",
    "sasl.jaas.config": f"{_OF_JAVA}write its user and password as sasl.username and sasl.password",
    "sasl.login.callback.handler.class": f"{_OF_JAVA}take it out",
    "ssl.ca.certificate.stores": f"is for Windows: {_PEM_AUTHORITIES}",
    "ssl.certificate.verify_cb": _NO_COUNTERPART,
    "ssl.curves.list": _NO_COUNTERPART,
    "ssl.enabled.protocols": f"{_OF_JAVA}take it out",
    "ssl.engine.id": _NO_COUNTERPART,
    "ssl.engine.location": _NO_COUNTERPART,
    "ssl.keystore.certificate.chain": f"{_OF_JAVA}write ssl.certificate.pem",
    "ssl.keystore.key": f"{_OF_JAVA}write ssl.key.pem",
    "ssl.keystore.location": f"is a store that the second client (kafka-python) does not read: {_PEM_OWN}",
    "ssl.keystore.password": "belongs to ssl.keystore.location: write ssl.key.password for an encrypted key",
    "ssl.keystore.type": f"{_OF_JAVA}{_PEM_OWN}",
    "ssl.protocol": f"{_OF_JAVA}take it out",
    "ssl.providers": _NO_COUNTERPART,
    "ssl.sigalgs.list": _NO_COUNTERPART,
    "ssl.truststore.certificates": f"{_OF_JAVA}write ssl.ca.pem",
    "ssl.truststore.location": f"{_OF_JAVA}{_PEM_AUTHORITIES}",
    "ssl.truststore.password": f"{_OF_JAVA}take it out, because a PEM file in ssl.ca.location has no password",
    "ssl.truststore.type": f"{_OF_JAVA}take it out, because ssl.ca.location is always PEM",
    "ssl_ca": "cannot be written as text: write ssl.ca.location",
    "ssl_certificate": "cannot be written as text: write ssl.certificate.location",
    "ssl_engine_callback_data": _NO_COUNTERPART,
    "ssl_key": "cannot be written as text: write ssl.key.location",
}
"""Advice for each property that cannot be used; the text continues after its name."""

MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
"""Librdkafka has both names for it."""
_SERVER = re.compile(r"([a-z0-9_]+://)?(\[[0-9a-f:.%]+\]|[^\s:\[\]/]+)(:[0-9]{1,5})?", re.IGNORECASE)
LOGINS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
"""The SASL mechanisms that both clients have."""
BY_TOKEN = ("OAUTHBEARER", "AWS_MSK_IAM")
BY_KERBEROS = "GSSAPI"
"""SASL mechanism of Kerberos, and librdkafka's default if none is written."""
_WAYS_IN = f"what works is {', '.join(LOGINS)}, or a client certificate (ssl.certificate.location, ssl.key.location)"

USED = frozenset({*KAFKA_PYTHON, *TLS, *LIBRDKAFKA_ALONE})
KNOWN = frozenset({*USED, *TOKENS, *KERBEROS, *IGNORED, *INSTEAD})


def is_ignored(name: str) -> bool:
    """Whether no client is given this property, whatever its value; ``topic.acks`` is librdkafka's for ``acks``."""
    return name in IGNORED or name.removeprefix("topic.") in CONSUMERS | PRODUCERS


def used(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what both clients are given of a connection in which nothing is refused."""
    return {name: text for name, text in properties.items() if name in USED}


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each property that counts and cannot be used, without its value."""
    for name in ("bootstrap.servers", "metadata.broker.list"):
        # Other values librdkafka or kafka-python would read as another server, or as none.
        servers = [server.strip() for server in properties.get(name, "").split(",") if server.strip()]
        if name in properties and not (servers and all(map(_SERVER.fullmatch, servers))):
            yield f"{name} must be host:port, or several with commas between them"
    yield from _login_problems(properties)
    for name in sorted(properties):
        if name in INSTEAD:
            yield f"{name} {INSTEAD[name]}"
        elif name not in KNOWN and not is_ignored(name):
            nearest = get_close_matches(name, sorted(KNOWN), n=1, cutoff=0.8)
            meant = f": did you mean {nearest[0]}?" if nearest else ": take it out"
            yield f"{printable(name)} is no property of librdkafka{meant}"


def _login_problems(properties: Mapping[str, str]) -> Iterator[str]:
    if not properties.get("security.protocol", "").lower().startswith("sasl"):
        return
    written = next((name for name in MECHANISM if properties.get(name)), None)
    mechanism = properties[written] if written else BY_KERBEROS
    if mechanism in BY_TOKEN:
        which = f"{written} {mechanism}{_with(TOKENS, properties)}"
        yield f"{which}: a login by token (OIDC, IAM of MSK, Google) is not supported; {_WAYS_IN}"
    elif mechanism == BY_KERBEROS:
        which = f"{written} GSSAPI" if written else "sasl.mechanism is not written, which means GSSAPI"
        yield (
            f"{which}{_with(KERBEROS, properties)}: Kerberos is not supported, because the confluent-kafka of PyPI is "
            f"built without it; {_WAYS_IN}"
        )
    elif mechanism not in LOGINS:
        yield f"{written} is none that both clients have; {_WAYS_IN}"
    elif not (properties.get("sasl.username") and properties.get("sasl.password")):
        yield f"{mechanism} needs both sasl.username and sasl.password"
    if len({properties[name] for name in MECHANISM if properties.get(name)}) > 1:
        yield "sasl.mechanism and sasl.mechanisms are two names for one property: write one of them"


def _with(names: frozenset[str], properties: Mapping[str, str]) -> str:
    found = sorted(names & properties.keys())
    return f" (with {', '.join(found)})" if found else ""


def has_readable_password(properties: Mapping[str, str]) -> bool:
    """Return whether the login sends its password or token readable, over a connection without TLS.

    SCRAM and Kerberos send none. Without a mechanism librdkafka takes GSSAPI.
    """
    mechanism = (properties.get("sasl.mechanisms") or properties.get("sasl.mechanism") or "").upper()
    is_hidden = mechanism in ("", BY_KERBEROS) or mechanism.startswith("SCRAM-")
    return properties.get("security.protocol", "").upper() == "SASL_PLAINTEXT" and not is_hidden
