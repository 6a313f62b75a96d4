"""The login of ZooKeeper by SASL, with DIGEST-MD5; kazoo finds its mechanism by name."""

from __future__ import annotations

from topicops.edges.extras import require_extra

require_extra("zookeeper-sasl")

from puresasl import SASLProtocolException  # noqa: E402 - after the check that it is there
from puresasl.mechanisms import DigestMD5Mechanism, mechanisms  # noqa: E402

REALM_HOST = "zk-sasl-md5"
"""Replaces every server's name in a digest. Source: org.apache.zookeeper.util.SecurityUtils#createSaslClient."""


class ZooKeeperDigest(DigestMD5Mechanism):  # type: ignore[misc]  # pure-sasl is untyped
    """Ends with an error on a server that knows no SASL: kazoo would ask it again thousands of times a second."""

    name = "ZOOKEEPER-DIGEST"

    def __init__(self, sasl: object, **properties: str) -> None:
        super().__init__(sasl, **properties)
        self.sasl.host = REALM_HOST
        self._has_begun = False

    def process(self, challenge: bytes | None = None) -> bytes | None:
        """Return the answer to a challenge; None begins the login. Raises ``SASLProtocolException``."""
        if self._has_begun and not challenge:
            raise SASLProtocolException("the server takes no SASL login")
        self._has_begun = True
        response: bytes | None = super().process(challenge)
        return response


mechanisms[ZooKeeperDigest.name] = ZooKeeperDigest


def sasl_options(user: str, password: str) -> dict[str, str]:
    return {"mechanism": ZooKeeperDigest.name, "username": user, "password": password}
