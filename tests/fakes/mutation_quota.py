"""The quota of brokers on partitions that a user creates and deletes (KIP-599), in the time of a given clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

STRICT_SINCE = {"CreateTopics": 6, "DeleteTopics": 5, "CreatePartitions": 3}
"""The version of a request from which its sender knows error 89, by request.

Source: ``strictSinceVersion`` in kafka.server.KafkaApis (3.9).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the quota says of one topic of a request."""

    is_refused: bool
    """THROTTLING_QUOTA_EXCEEDED (89): nothing was done."""
    throttle_s: float
    """Until the quota is there again; 0: it still is. An answer tells the last of its topics, less the time since."""


class MutationQuota:
    """One user's bucket of tokens. A partition takes one; the bucket may go below zero, and is used up from there.

    Source: org.apache.kafka.common.metrics.stats.TokenBucket, kafka.server.StrictControllerMutationQuota and
    kafka.server.PermissiveControllerMutationQuota of ControllerMutationQuotaManager.scala (3.9).
    """

    def __init__(self, *, rate: float, windows: int = 11, window_s: float = 1.0, now: Callable[[], float]) -> None:
        """The bucket is full: that of a broker fills from 1970 on.

        Args:
            rate: Tokens a second, ``controller_mutation_rate`` of the user.
            windows: ``controller.quota.window.num``; the bucket holds the tokens of all windows.
            window_s: ``controller.quota.window.size.seconds``.
            now: Seconds of any clock that never goes back.
        """
        self._rate, self._capacity, self._now = rate, rate * windows * window_s, now
        self._tokens, self._filled_at = self._capacity, now()

    def take(self, mutations: int, *, is_strict: bool = True) -> Taken:
        """Take a token for each partition to create or delete.

        Args:
            is_strict: The request has a version of ``STRICT_SINCE``: a bucket below zero refuses. Else it never does,
                and the answer alone tells how long to wait.
        """
        self._fill()
        if is_strict and self._tokens < 0:
            return Taken(is_refused=True, throttle_s=self._missing_s())
        self._tokens -= mutations
        # A strict quota is checked before it is taken from, so what takes the last token is not throttled.
        return Taken(is_refused=False, throttle_s=0.0 if is_strict else self._missing_s())

    def _fill(self) -> None:
        now = self._now()
        self._tokens = min(self._capacity, self._tokens + self._rate * (now - self._filled_at))
        self._filled_at = now

    def _missing_s(self) -> float:
        """Source: kafka.server.ControllerMutationQuotaManager#throttleTimeMs."""
        return round(max(0.0, -self._tokens / self._rate), 3)
