"""The mark of a home: made once, the same for all who share the folder, another in each other folder."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from topicops.edges.home.home_mark import NAME, mark_of, read_mark
from topicops.model.errors import ArtifactError


def test_a_home_keeps_the_token_that_its_first_user_gave_it(tmp_path: Path) -> None:
    assert read_mark(tmp_path / "home") is None
    token = mark_of(tmp_path / "home")
    assert len(token) == 32
    assert mark_of(tmp_path / "home") == read_mark(tmp_path / "home") == token


def test_two_folders_differ_even_at_the_same_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    token = mark_of(home)
    shutil.rmtree(home)
    assert mark_of(home) != token


def test_those_who_come_at_once_get_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(mark_of, [tmp_path] * 8))) == 1


def test_a_damaged_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"home\.json: cannot be read"):
        mark_of(tmp_path)
