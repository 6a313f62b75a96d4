"""On a terminal a line of progress takes the place of the one before; elsewhere each line stays."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

SAID = """
import logging, sys
from topicops.cli.output import print_error, progress
logging.basicConfig(level=logging.{level})
progress("Reading topics")
progress("Reading the live topics of prod, " + "x" * 200)
print_error("warning: a broker is slow")
progress("Checking")
"""
CLEAR = "\r\x1b[2K"


def shown(level: str, term: str) -> str:
    terminal, stderr = pty.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": "40"}
    command = [sys.executable, "-c", SAID.format(level=level)]
    with os.fdopen(terminal, "rb") as reader:
        subprocess.run(command, stderr=stderr, env=environment, check=True, timeout=60)
        os.close(stderr)
        return reader.read1().decode()


def test_on_a_terminal_one_line_renews_itself_and_leaves_nothing() -> None:
    long = f"Reading the live topics of prod, {'x' * 6}"
    lines = f"{CLEAR}Reading topics{CLEAR}{long}{CLEAR}warning: a broker is slow\r\n{CLEAR}Checking{CLEAR}"
    assert shown("WARNING", "xterm") == lines


@pytest.mark.parametrize(("level", "term"), [("INFO", "xterm"), ("WARNING", "dumb")])
def test_each_line_stays_where_all_is_asked_for_and_where_no_line_can_be_taken_back(level: str, term: str) -> None:
    lines = shown(level, term).splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "Reading topics",
        "Reading the live topics of prod",
        "warning: a broker is slow",
        "Checking",
    ]
