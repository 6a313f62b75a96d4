"""Virtual time: a queue of what will happen, and one source of chance."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random


class World:
    """Time passes only in ``pass_time``; what is due happens then, in its order."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        """Seconds."""
        self.story: list[str] = []
        """What happened that a reader wants to know, each with its time."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do ``action`` once so much time has passed."""
        self._number += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._number, action))

    def soon(self, action: Callable[[], None]) -> None:
        """Within some milliseconds, as a message takes."""
        self.after(self.random.uniform(0.001, 0.02), action)

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            due, _, action = heapq.heappop(self._queue)
            self.now = max(self.now, due)
            action()
        self.now = max(self.now, end)

    def settle(self) -> None:
        """Let all happen that is on its way, however long that takes."""
        while self._queue:
            self.pass_time(self._queue[0][0] - self.now)

    def wait_until(self, holds: Callable[[], bool], *, limit_s: float, step_s: float = 0.05) -> bool:
        """Let time pass until it holds; False: it did not in time."""
        end = self.now + limit_s
        while not holds():
            if self.now >= end:
                return False
            self.pass_time(step_s)
        return True

    def tell(self, sentence: str) -> None:
        self.story.append(f"{self.now:8.2f} s  {sentence}")
