"""A long wait is said each 10 s, with what it waits for and its end; a short one is not."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from topicops.model import waits
from topicops.model.waits import Wait, told_waits, waiting_for


def test_a_wait_is_said_each_ten_seconds_with_its_end() -> None:
    wait = Wait("the brokers", 65, began=0)

    said = [line for second in range(31) if (line := wait.due(second))]

    assert said == [f"waiting for the brokers: {n} s, at most 65 s" for n in (10, 20, 30)]


def test_the_innermost_wait_is_said_and_one_that_ends_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SAID_AFTER_S", 0.2)
    monkeypatch.setattr(waits, "_LOOKED_S", 0.01)
    said: list[str] = []
    with told_waits(said.append), waiting_for("the run", limit_s=60):
        with waiting_for("the controller", limit_s=20):
            until = time.monotonic() + 10
            while not said and time.monotonic() < until:
                time.sleep(0.01)
        with waiting_for("a short answer", limit_s=20):
            pass

    assert said[0].startswith("waiting for the controller:")
    assert not any("short" in line for line in said)


def test_a_wait_of_many_short_ones_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SAID_AFTER_S", 0.3)
    monkeypatch.setattr(waits, "_LOOKED_S", 0.01)
    said: list[str] = []
    with told_waits(said.append), waiting_for("all brokers", limit_s=60):
        until = time.monotonic() + 10
        while not said and time.monotonic() < until:
            with waiting_for("one broker", limit_s=20):
                time.sleep(0.1)

    assert said[0].startswith("waiting for all brokers:")


def test_a_wait_for_the_same_inside_a_wait_goes_on_as_that_one() -> None:
    with waiting_for("the server", limit_s=60):
        with waiting_for("the server", limit_s=20):
            assert [wait.limit_s for wait in waits._open] == [60]
            with waiting_for("the network", limit_s=5), waiting_for("the server", limit_s=4):
                assert [wait.limit_s for wait in waits._open] == [60, 5, 4]
        assert len(waits._open) == 1
    assert waits._open == []


def test_another_thread_that_waits_for_the_same_is_another_wait() -> None:
    with waiting_for("the server", limit_s=60), ThreadPoolExecutor(1) as pool:
        assert pool.submit(limits_inside_a_wait_for, "the server").result() == [60, 20]


def limits_inside_a_wait_for(what: str) -> list[float]:
    with waiting_for(what, limit_s=20):
        return [wait.limit_s for wait in waits._open]
