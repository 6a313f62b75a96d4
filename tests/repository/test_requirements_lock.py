"""requirements.lock: complete, hashed, and free of any index address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_locked_package_has_a_hash() -> None:
    entries = re.split(r"\n(?=[a-z0-9])", LOCK)
    assert len(entries) > 100
    assert [e.splitlines()[0] for e in entries if "--hash=sha256:" not in e] == []


def test_a_company_mirror_works_since_no_index_is_named() -> None:
    assert not re.search(r"^(-i|--index|--extra-index|--find-links)", LOCK, re.MULTILINE)


def test_every_declared_dependency_is_locked() -> None:
    declared = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        declared += extra
    names = {re.split(r"[\[<>=~! ]", requirement)[0].lower().replace("_", "-") for requirement in declared}
    locked = {line.split("==")[0] for line in LOCK.splitlines() if "==" in line and not line.startswith(" ")}
    assert names <= locked
