"""The table of codes: what is in it is produced and has a case, what is reserved is not."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from topicops.model import errors
from topicops.model.errors import TopicopsError
from topicops.model.specs.codes import CODES, WARNINGS

ROOT = Path(__file__).parents[3]
PRODUCT = ROOT / "plugins" / "topicops"
TESTS = ROOT / "tests"
CODE = re.compile(r"TOP\d{3}")
IN_USE = [code for code, entry in CODES.items() if not entry.is_reserved]
RESERVED = [code for code, entry in CODES.items() if entry.is_reserved]


def test_every_code_says_what_it_is_how_it_comes_and_what_to_do() -> None:
    incomplete = [
        entry.code for entry in CODES.values() if not (entry.title and entry.cause and entry.example and entry.fix)
    ]

    assert incomplete == []
    assert [code for code in CODES if not re.fullmatch(r"TOP[1-8]\d\d", code)] == []
    assert list(CODES) == sorted(CODES)


def test_warnings_are_codes_in_use() -> None:
    assert [code for code in WARNINGS if CODES[code].is_reserved] == []


def nodes_of(file: Path) -> Iterator[ast.AST]:
    """The syntax of a module without its docstrings and without the sets that only look codes up."""
    left: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if not is_no_producer(node):
            yield node
            left.extend(ast.iter_child_nodes(node))


def texts_of(file: Path) -> Iterator[str]:
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def is_no_producer(node: ast.AST) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_set = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frozenset"
    return is_docstring or is_set


@cache
def produced() -> frozenset[str]:
    """Codes that stand in a text of the product, where a problem, an error or a reason is made."""
    files = [file for file in PRODUCT.rglob("*.py") if file.name != "codes.py"]
    return frozenset(code for file in files for text in texts_of(file) for code in CODE.findall(text))


@pytest.mark.parametrize("code", IN_USE)
def test_a_code_in_use_is_produced_somewhere(code: str) -> None:
    assert code in produced()


@pytest.mark.parametrize("code", RESERVED)
def test_a_reserved_code_is_produced_nowhere(code: str) -> None:
    assert code not in produced()


def test_no_code_is_produced_that_the_table_lacks() -> None:
    assert produced() <= CODES.keys()


# ---- cases ----

OF_A_FILE = [code for code in IN_USE if code < "TOP400"]
OF_A_RUN = [code for code in IN_USE if code >= "TOP400"]


@cache
def in_the_tables() -> frozenset[str]:
    """Codes that a table expects of files; each of its rows is run and compared."""
    cases = json.loads((TESTS / "data" / "bad-inputs.json").read_text(encoding="utf-8"))["cases"]
    of_rules = CODE.findall((TESTS / "steps" / "specs" / "test_rules.py").read_text(encoding="utf-8"))
    return frozenset(expected["code"] for case in cases for expected in case["expect"]) | frozenset(of_rules)


@pytest.mark.parametrize("code", OF_A_FILE)
def test_a_code_of_files_has_a_case(code: str) -> None:
    assert code in in_the_tables()


def names_of(code: str) -> Iterator[str]:
    """What a test may call the problem: the code, the error that carries it, the check that finds it."""
    yield code
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, TopicopsError) and vars(error).get("code") == code:
            yield error.__name__
    yield from checks_by_code()[code]


@cache
def checks_by_code() -> Mapping[str, set[str]]:
    """Ids of the checks of verify, by the code that they give."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in ("checks.py", "verify.py"):
        for node in ast.walk(ast.parse((PRODUCT / "steps" / "verifying" / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
                found[str(given.get("code"))] |= {str(given[word]) for word in ("check", "id") if word in given}
    return found


@cache
def words_of_the_tests() -> frozenset[str]:
    """Names and words in the code of tests; comments and docstrings do not count."""
    return frozenset(word for file in TESTS.rglob("test_*.py") for word in words_of(file))


def words_of(file: Path) -> Iterator[str]:
    if file == Path(__file__):
        return
    for node in nodes_of(file):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\w+", node.value)


@pytest.mark.parametrize("code", OF_A_RUN)
def test_a_code_of_a_run_is_asserted_in_a_test(code: str) -> None:
    assert words_of_the_tests() & set(names_of(code))
