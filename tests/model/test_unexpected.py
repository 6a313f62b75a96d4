"""Errors that no code expects, as a sentence that says what to do."""

from __future__ import annotations

import errno

import pytest

from topicops.model.errors import sentence


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENAMETOOLONG, "too long", "x" * 300), f"{'x' * 60}...: this name is too long"),
        (OSError(errno.ENAMETOOLONG, "too long"), "this name is too long"),
        (UnicodeEncodeError("utf-8", "a/b\udcff.yaml", 3, 4, "surrogates"), "a/b\\udcff.yaml: this name or text"),
        (OSError(errno.EMFILE, "Too many open files"), "raise ulimit -n"),
        (MemoryError(), "no memory"),
        (KeyError("x"), "internal error: KeyError: 'x'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_with_a_known_cause_says_it(error: Exception, words: str) -> None:
    assert words in sentence(error)
