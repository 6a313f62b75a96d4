"""Ctrl-C and SIGTERM may come at any moment, also while a line is being printed."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from fixtures.simulated import Simulated
from topicops.cli.apply import StopSignals
from topicops.cli.output import progress
from topicops.model.errors import ExitStatus

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SAID = "stopping after the request in flight; once more stops at once\n"


class _StruckFile(io.RawIOBase):
    """Takes all texts; while the one that contains ``at`` is written, the process gets a signal, ``times`` in all."""

    def __init__(self, at: bytes, *, times: int = 1) -> None:
        self.taken = b""
        self._at, self._left = at, times

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        text = bytes(data)
        while self._left and self._at in text:
            self._left -= 1
            signal.raise_signal(signal.SIGTERM)
        self.taken += text
        return len(text)


class Struck:
    """A stderr of Python's own layers on such a file."""

    def __init__(self, at: str, *, times: int = 1) -> None:
        self._file = _StruckFile(at.encode(), times=times)
        self.stream = io.TextIOWrapper(io.BufferedWriter(self._file), "utf-8", line_buffering=True)

    @property
    def text(self) -> str:
        return self._file.taken.decode()


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_signal_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert capsys.readouterr().err == SAID
        assert stop.is_asked()
    assert (stop.exit_status, capsys.readouterr().err) == (ExitStatus.INTERRUPTED, "")


@pytest.mark.parametrize("is_asked_again", [True, False], ids=["before the next request", "at the end"])
def test_a_signal_during_a_print_is_said_after_that_line(monkeypatch: pytest.MonkeyPatch, is_asked_again: bool) -> None:
    struck = Struck("create a: done")
    monkeypatch.setattr(sys, "stderr", struck.stream)
    with StopSignals() as stop:
        progress("create a: done")
        assert struck.text == "create a: done\n"
        if is_asked_again:
            assert stop.is_asked()
            assert struck.text == f"create a: done\n{SAID}"
    assert stop.exit_status == ExitStatus.TERMINATED
    assert struck.text == f"create a: done\n{SAID}"


def test_a_second_signal_during_the_same_print_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    struck = Struck("create a: done", times=2)
    monkeypatch.setattr(sys, "stderr", struck.stream)
    with StopSignals(), pytest.raises(KeyboardInterrupt):
        progress("create a: done")


def test_apply_ends_by_its_outcomes_when_a_signal_comes_while_one_is_printed(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated.workspace.apply_settings = {"topicsPerRequest": 1}
    for name in ("a", "b"):
        simulated.workspace.topic(name)
    struck = Struck("create a: done")
    monkeypatch.setattr(sys, "stderr", struck.stream)

    ended = simulated.workspace.run("apply", "--environment", "local", "--yes")

    assert ended.status == ExitStatus.TERMINATED, struck.text
    assert "Interrupted: 1 done, 1 not sent." in ended.out
    assert f"create a: done\n{SAID}" in struck.text
    assert [event for event in simulated.events if event.startswith("request")] == ["request create"]
