"""What no module of the package does: backtrack, parse YAML beside the one reader, name a release of Kafka."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Any

import pytest

from fixtures.expressions import PACKAGE, Dynamic, Expression, expressions, slow_text
from topicops.model.specs.topic_config import TOPIC_CONFIGS

OF_TABLES = {form.constraint.pattern for config in TOPIC_CONFIGS.values() for form in config.forms} - {None}


@pytest.fixture(scope="module")
def found() -> list[Expression | Dynamic]:
    return list(expressions())


def test_every_expression_is_in_the_source_but_five(found: Sequence[Expression | Dynamic]) -> None:
    assert {one.place.partition(":")[0] for one in found if isinstance(one, Dynamic)} == {
        "edges/kafka/questions/consumer_groups.py",  # from brokers, of few repetitions: `MOST_REPEATS`
        "steps/specs/rules/ownership.py",  # from environment files, for an engine that never backtracks
        "model/specs/config_checks.py",  # from the tables of Kafka's configs: `OF_TABLES`
        "steps/specs/fields.py",  # from the models: `StringConstraints` is in the source
        "steps/specs/rules/names.py",  # made from globs
    }


def test_each_expression_is_linear(found: Sequence[Expression | Dynamic]) -> None:
    fixed = [one for one in found if isinstance(one, Expression)]
    assert len(fixed) > 50
    texts = ((one.place, slow_text(one.pattern, is_searched=one.is_searched)) for one in fixed)
    assert [(place, text) for place, text in texts if text is not None] == []


def test_each_expression_from_a_table_or_a_glob_is_linear() -> None:
    patterns = [*sorted(OF_TABLES), translate("*a*b*"), f"{translate('a*')}|{translate('*.*b')}"]
    assert [pattern for pattern in patterns if slow_text(re.compile(pattern), is_searched=False) is not None] == []


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        pytest.param(r"[0-9]+\.?[0-9]*x", False, id="two repetitions beside each other"),
        pytest.param(r"([0-9]+)+x", False, id="a repetition in a repetition"),
        pytest.param(r"v[0-9]+[0-9a-f]*x", False, id="behind a first character"),
        pytest.param(r"\s*,\s*", True, id="searched, and it begins with a repetition"),
        pytest.param(r"<a [^)]*>", True, id="searched, and its own beginning may follow"),
        pytest.param(rb"[a-z]*[a-z0-9]*!", False, id="of bytes"),
    ],
)
def test_an_expression_that_backtracks_is_found(pattern: str | bytes, is_searched: bool) -> None:
    expression: re.Pattern[Any] = re.compile(pattern)

    assert slow_text(expression, is_searched=is_searched) is not None


# ---- YAML is read in one place, which has the limits ----


READERS = {
    "edges/specs/fast_path.py": "events, which are counted",
    "edges/specs/reader.py": "events, which are limited",
}
"""Modules that may import yaml, and what they use it for."""
IMPORTS_YAML = re.compile(r"^\s*(?:from\s+yaml\b|import\b[^#\n]*\byaml\b)", re.MULTILINE)
LOADS_YAML = re.compile(r"\byaml\s*\.\s*(?:(?:safe_|full_|unsafe_)?load|compose)(?:_all)?\b")


def test_no_other_module_imports_a_yaml_parser() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert {name for name, text in texts.items() if IMPORTS_YAML.search(text)} == READERS.keys()
    assert [name for name, text in texts.items() if LOADS_YAML.search(text)] == []


# ---- one module says which release of Kafka can what ----


EXEMPT = {
    "model/release.py": "the one module",
    "model/codes.py": "examples of problems, which name the releases they are about",
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in EXEMPT)
NAMED = re.compile(r"\b(Kafka|brokers|before|since) [0-9]+\.[0-9]|\bbrokers (before|since|from|of) [0-9]+\.[0-9]")
NUMBER = re.compile(r"[0-9]\.[0-9]")
ALONE = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?(-IV[0-9]+)?")
OTHER_VERSIONS = re.compile("format_?version|__version__|fingerprint|dropped. before|servers before", re.IGNORECASE)
"""Lines about versions of our own files, and of ZooKeeper."""


def release_numbers(module: Path) -> Iterator[str]:
    """Texts outside docstrings that name a release of Kafka, or that are nothing but one."""
    text = module.read_text(encoding="utf-8")
    if not NUMBER.search(text):
        return
    tree, lines = ast.parse(text), text.splitlines()
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documented:
            continue
        is_release = NAMED.search(node.value) or ALONE.fullmatch(node.value)
        if is_release and not OTHER_VERSIONS.search(lines[node.lineno - 1]):
            yield f"line {node.lineno}: {node.value[:80]}"


def test_no_other_module_names_a_release() -> None:
    found = {str(module.relative_to(PACKAGE)): [*release_numbers(module)] for module in MODULES}
    assert {module: numbers for module, numbers in found.items() if numbers} == {}


def test_what_is_exempt_is_there() -> None:
    assert all((PACKAGE / module).is_file() for module in EXEMPT)
