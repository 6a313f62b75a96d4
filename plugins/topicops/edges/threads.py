"""Work in a thread of its own, for clients that cannot be given a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run ``work`` in a thread of its own, which does not keep the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - `Future.result` raises it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
