"""Files that are made to be slow: judging them takes no longer than for other files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.spec_folder import HEAD, LOCAL, configs, diagnostics, topic, write
from topicops.edges.specs.open_files import source_lines
from topicops.model.specs.topic_config import LONGEST_NUMBER
from topicops.steps.reporting.diagnostics_text import diagnostics_text

SIZES = (4_000, 32_000)
MOST_S = 3.0
"""Of processor time. The slowest of these files takes a fifth of it; before, the largest took minutes."""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(size: int, line: str) -> str:
    """At most 960 lines, with a number each, since a file may have 2,000 nodes."""
    return "".join(line.format(n=number) for number in range(min(size // len(line), 960)))


SLOW: dict[str, tuple[str, Callable[[int], str]]] = {
    "a number and one letter": ("web/a.yaml", lambda n: configs(f"min.cleanable.dirty.ratio: {'9' * n}x")),
    "a count of partitions": ("web/a.yaml", lambda n: topic("a", f"spec: {{partitions: {'9' * n}}}\n")),
    "a list of blanks": ("web/a.yaml", lambda n: configs(f"cleanup.policy: 'a{' ' * n}b'")),
    "misspelled configs": (
        "web/a.yaml",
        lambda n: topic("a", "spec:\n  configs:\n" + lines(n, "    retention.{n}ms: 1\n")),
    ),
    "misspelled fields": ("web/a.yaml", lambda n: topic("a", "spec:\n" + lines(n, "  partition{n:05}: 1\n"))),
    "numbers of an assignment": (
        "web/a.yaml",
        lambda n: topic("a", "spec:\n  assignment:\n" + lines(n // 2, "    {n}: [01, 02]\n")),
    ),
    "overrides": (
        "environments/local.yaml",
        lambda n: LOCAL + "  overrides:\n" + lines(n // 2, "    t{n}: {{partitions: 012}}\n"),
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_file_that_is_made_to_be_slow_is_judged_in_time(name: str) -> None:
    file, text_of = SLOW[name]
    for size in SIZES:
        write(Path(), {"web/a.yaml": topic("a"), file: text_of(size)})

        started = time.thread_time()
        found = diagnostics(Path())

        assert time.thread_time() - started < MOST_S, size
        assert found


def test_many_unknown_fields_of_a_large_file_are_found_and_shown_in_time() -> None:
    names = "".join(f"  exceptions{number}: 1\n" for number in range(12_000))
    write(Path(), {"environments/local.exceptions.yaml": HEAD.format(kind="Exceptions", name="local") + names})

    started = time.thread_time()

    found = diagnostics(Path())
    assert len(found) == 12_000
    assert diagnostics_text(found, source_lines).count("^\n") == 12_000
    assert time.thread_time() - started < 4 * MOST_S


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(topic("a", f"spec: {{partitions: {'1' * 101}}}\n"), id="of a field"),
        pytest.param(configs(f"retention.ms: {'1' * 101}"), id="of a config"),
        pytest.param(configs(f"min.cleanable.dirty.ratio: 0.{'1' * 99}"), id="with a fraction"),
    ],
)
def test_a_number_that_is_too_long_is_refused_by_its_length(text: str) -> None:
    write(Path(), {"web/a.yaml": text})

    (problem,) = diagnostics(Path())

    assert f"101 characters; a number has at most {LONGEST_NUMBER}" in problem.summary


def test_a_duration_that_is_too_long_is_refused_by_its_length() -> None:
    write(Path(), {"web/a.yaml": topic("a")}, local=LOCAL + f"  policy: {{restsFor: {'1' * 100}s}}\n")

    assert any("101 characters; a number has at most 100" in problem.summary for problem in diagnostics(Path()))
