from pathlib import Path

import pytest

from topicops.features.shared.java import default_cache


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOPICOPS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "topicops"
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"
