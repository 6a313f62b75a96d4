"""Tiers by folder: what talks to a real system, or runs a case table, carries its folder's marker; unmarked: fast."""

from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = [
    "fixtures.zookeeper",
    "fixtures.secured_zookeeper",
    "fixtures.ensemble",
    "fixtures.cluster",
    "fixtures.release_table",
    "fixtures.guarded_broker",
    "fixtures.spark",
    "fixtures.workspace",
    "fixtures.simulated",
    "fixtures.soak_sample",
    "fixtures.summaries",
    "fixtures.wheel",
    "fixtures.workers",
]

MARKED_FOLDERS = ("edges", "airflow", "cluster", "versions", "cases")
TESTS = Path(__file__).parent

settings.register_profile("short", max_examples=50, deadline=None)
settings.load_profile("short")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Yield a folder of this session for the leases that count for the whole account."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a folder of which ``-m`` selects nothing: what its tests import takes seconds."""
    if collection_path.parent != TESTS or collection_path.name not in MARKED_FOLDERS:
        return None
    expression = str(config.option.markexpr)
    if not expression or any(is_selected(expression, marks) for marks in marks_of(collection_path.name)):
        return None
    return True


def marks_of(folder: str) -> Iterator[set[str]]:
    """Yield every set of markers that a test of the folder may carry."""
    others = [mark for mark in (*MARKED_FOLDERS, "soak") if mark != folder]
    more = chain.from_iterable(combinations(others, size) for size in range(len(others) + 1))
    return ({folder, *marks} for marks in more)


def is_selected(expression: str, marks: set[str]) -> bool:
    """As pytest reads the expression, which is one of Python's in names."""
    names = {name: name in marks for name in compile(expression, "-m", "eval").co_names}
    return bool(eval(expression, {"__builtins__": {}}, names))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)
