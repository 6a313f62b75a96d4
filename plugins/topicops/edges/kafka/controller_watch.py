"""Which broker is the controller, asked while a request waits for its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from kafka.protocol.metadata import MetadataRequest

from topicops.edges.kafka.clients.kafka_python_inside import Reconnecting
from topicops.edges.kafka.clients.settings import Deadline
from topicops.model.errors import ClusterError
from topicops.model.waits import waiting_for

NO_CONTROLLER_ID = -1
ELECTION_S = 20.0
"""Seconds that a request waits for the election of a controller; the session of a dead one lasts 18 s by default."""
WATCH_S = 1.0
"""Seconds between two questions to the brokers, during a wait, whether the controller has changed."""


class ControllerWatch:
    """Asks the brokers again and again which of them is the controller.

    Librdkafka asks once: after that broker died, it waits for it until the request's time is up. Once ``interrupted``
    is true, no election is waited for.
    """

    def __init__(self, properties: Mapping[str, str], interrupted: Callable[[], bool] = lambda: False) -> None:
        self._interrupted = interrupted
        self._connections = Reconnecting(properties, request_timeout_s=WATCH_S)
        self._controller: int | None = None
        """Controller at the last request."""
        self.just_seen: int | None = None
        """Last answer of ``has_controller``; None means not known."""

    def has_controller(self, forget: Callable[[], None]) -> bool:
        """Wait for an election if there is no controller; call ``forget`` if it is another broker than before."""
        deadline = Deadline(ELECTION_S)
        with waiting_for("the election of a controller", limit_s=ELECTION_S):
            while (found := self._find()) == NO_CONTROLLER_ID:
                if deadline.is_over or self._interrupted():
                    return False
                time.sleep(WATCH_S / 4)
        self.just_seen = found
        if found is not None:
            if self._controller not in (None, found):
                forget()
            self._controller = found
        return True

    def successor(self) -> str:
        """Return a sentence if another broker has become the controller since the last request; else empty."""
        found = self._find()
        if found in (None, NO_CONTROLLER_ID, self._controller):
            return ""
        return f"broker {found} has become the controller since the request went to broker {self._controller}"

    def awaited_successor(self) -> str:
        """Like ``successor``, but wait for the election while the controller of the last request is silent."""
        deadline = Deadline(ELECTION_S)
        with waiting_for("another controller, since this one is silent", limit_s=ELECTION_S):
            while not (successor := self.successor()) and not self._answers() and not deadline.is_over:
                if self._interrupted():
                    break
                time.sleep(WATCH_S / 4)
        return successor

    def _answers(self) -> bool:
        """Return whether the controller answers; True if it is not known, since no election can be waited for then."""
        if self._controller is None or self._connections.current is None:
            return True
        answers = self._connections.current.ask({self._controller: MetadataRequest(topics=[])})
        return not isinstance(answers[self._controller], str)

    def close(self) -> None:
        self._connections.close()

    def _find(self) -> int | None:
        """Return the id of the controller; ``NO_CONTROLLER_ID`` while there is none; None means not known."""
        try:
            found = self._connections().controller_or_none()
        except ClusterError:
            self.close()
            return None
        return NO_CONTROLLER_ID if found is None else found
