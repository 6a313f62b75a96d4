"""requirements.lock: complete, hashed, and free of any index address; nothing is installed without a hash."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
BASE_LOCK = (ROOT / "requirements-cli.lock").read_text(encoding="utf-8")
IMAGE_LOCK = (ROOT / "requirements-image.lock").read_text(encoding="utf-8")
UV = (ROOT / "requirements-uv.txt").read_text(encoding="utf-8")
INSTALLS = {
    f"{name}: {line.strip()}": line
    for name in ("Makefile", "Dockerfile", "action.yml")
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    if re.search(r"\b(pip3?|uv) (pip )?install\b", line)
}
OUR_OWN = ("--no-deps", "--no-build-isolation")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCAL = tomllib.loads((ROOT / "local/pyproject.toml").read_text(encoding="utf-8"))
CLIENT_ALONE = {"pyspark-client"}
"""Of the extra `connect`, which is for installs without `spark`."""
OURS = {PROJECT["project"]["name"], LOCAL["project"]["name"]}


@pytest.mark.parametrize(
    ("lock", "at_least"), [(LOCK, 100), (BASE_LOCK, 20), (IMAGE_LOCK, 150)], ids=["all", "base", "image"]
)
def test_every_locked_package_has_a_hash(lock: str, at_least: int) -> None:
    entries = re.split(r"\n(?=[a-z0-9])", lock)
    assert len(entries) > at_least
    assert [e.splitlines()[0] for e in entries if "--hash=sha256:" not in e] == []


def test_a_company_mirror_works_since_no_index_is_named() -> None:
    for lock in (LOCK, BASE_LOCK, IMAGE_LOCK):
        assert not re.search(r"^(-i|--index|--extra-index|--find-links)", lock, re.MULTILINE)


def test_every_declared_dependency_is_locked() -> None:
    groups = [need for group in PROJECT["dependency-groups"].values() for need in group if isinstance(need, str)]
    declared = [*PROJECT["project"]["dependencies"], *LOCAL["project"]["dependencies"], *groups]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        declared += extra
    assert names_of(declared) - OURS - CLIENT_ALONE <= locked(LOCK).keys()


def test_no_lock_has_two_distributions_that_write_the_package_pyspark() -> None:
    for lock in (LOCK, BASE_LOCK, IMAGE_LOCK):
        assert CLIENT_ALONE.isdisjoint(locked(lock))


def test_both_distributions_have_one_release_and_need_exactly_each_other() -> None:
    release = PROJECT["project"]["version"]
    assert LOCAL["project"]["version"] == release
    assert f"topicops=={release}" in LOCAL["project"]["dependencies"]
    assert PROJECT["project"]["optional-dependencies"]["local"] == [f"topicops-local=={release}"]


def test_the_base_install_is_locked_to_the_same_releases_without_the_extras() -> None:
    base = locked(BASE_LOCK)
    assert names_of([*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]) <= base.keys()
    assert base.items() <= locked(LOCK).items()
    assert base.keys().isdisjoint(
        {"apache-airflow", "great-expectations", "grpcio", "pandas", "pooch", "pyarrow", "pyspark"}
    )


def test_the_image_has_the_releases_that_the_tests_run_on_where_airflows_executors_allow_them() -> None:
    ours, image = locked(LOCK), locked(IMAGE_LOCK)
    differing = {name for name in image.keys() & ours.keys() if image[name] != ours[name]}
    assert differing <= {"python-dateutil"}  # celery names an exact release


def test_the_image_has_all_extras_but_local_postgresql_and_the_executors_and_no_tool_of_developers() -> None:
    image = locked(IMAGE_LOCK).keys()
    extras = [need for needs in PROJECT["project"]["optional-dependencies"].values() for need in needs]
    groups = PROJECT["dependency-groups"]
    wanted = names_of([*PROJECT["project"]["dependencies"], *extras, *groups["build"]])
    assert wanted - OURS - CLIENT_ALONE <= image
    executors = {f"apache-airflow-providers-{name}" for name in ("celery", "cncf-kubernetes", "fab", "postgres")}
    assert {"psycopg2-binary", "asyncpg", *executors} <= image
    assert image.isdisjoint(
        {"hypothesis", "import-linter", "mkdocs-material", "mypy", "pandas-stubs", "pooch", "pytest", "ruff"}
    )


def names_of(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=~! ]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


def locked(text: str) -> dict[str, str]:
    """Release by package."""
    lines = [line for line in text.splitlines() if "==" in line and not line.startswith(" ")]
    return {line.split("==")[0]: line.split("==")[1].split()[0] for line in lines}


def test_uv_itself_has_a_hash_for_each_of_its_wheels() -> None:
    name, *hashes = [line.strip(" \\") for line in UV.splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"uv==[0-9.]+", name)
    assert len(hashes) > 10
    assert [h for h in hashes if not re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h)] == []


@pytest.mark.parametrize("line", INSTALLS.values(), ids=INSTALLS)
def test_whatever_is_installed_is_checked_against_a_hash_or_is_our_own_source(line: str) -> None:
    assert "--require-hashes" in line or all(option in line for option in OUR_OWN)


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_pip_installs_uv_and_uv_all_else(name: str) -> None:
    lines = [line for label, line in INSTALLS.items() if label.startswith(f"{name}:")]
    assert ["requirements-uv.txt" in line for line in lines] == ["uv pip install" not in line for line in lines]
    assert sum("requirements-uv.txt" in line for line in lines) == 1
