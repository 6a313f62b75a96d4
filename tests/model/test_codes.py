"""The list of codes: each is an object that the program uses, and each has a case."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
import pytest

from topicops.model import errors
from topicops.model.codes import Code
from topicops.model.errors import TopicopsError

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "plugins" / "topicops"
TESTS = ROOT / "tests"
NUMBER = re.compile(r"\b(?:TOP\d{3}|[VQ]\d\d)\b")
MODULES = [file for file in PRODUCT.rglob("*.py") if file != PRODUCT / "model" / "codes.py"]
OF_FILES = [code for code in Code if re.match("TOP[1-3]", code)]
OF_RUNS = [code for code in Code if re.match("TOP[4-8]", code)]


def test_every_code_says_what_it_means_how_it_comes_about_and_what_to_do() -> None:
    incomplete = [code for code in Code if not (code.meaning and code.cause and code.fix)]

    assert incomplete == []
    assert [code.meaning for code in Code if "`" in code.meaning] == []  # pages and comments show it as it is
    assert [code for code in (*OF_FILES, *OF_RUNS) if not code.example] == []
    assert [code for code in Code if not NUMBER.fullmatch(code)] == []
    assert [*OF_FILES, *OF_RUNS] == sorted([*OF_FILES, *OF_RUNS])


def test_the_texts_are_those_of_the_codes_in_their_order() -> None:
    assert [*json.loads((PRODUCT / "model" / "codes.json").read_text(encoding="utf-8"))] == [*Code]


def test_no_module_writes_the_number_of_a_code() -> None:
    written = [
        f"{file.relative_to(PRODUCT)}:{node.lineno}: {node.value!r}"
        for file in MODULES
        if NUMBER.search(file.read_text(encoding="utf-8"))
        for node in nodes_of(file)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NUMBER.search(node.value)
    ]

    assert written == [], "take the object: Code.NAME"


def test_every_code_is_used() -> None:
    users = [file for file in MODULES if "Code." in file.read_text(encoding="utf-8")]
    used = {name for file in users for name in members_in(*nodes_of(file))}

    assert [code for code in Code if code.name not in used] == []


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """The syntax of a module without its docstrings and without the sets that only look codes up."""
    return tuple(walked(file))


def walked(file: Path) -> Iterator[ast.AST]:
    left: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if not is_no_use(node):
            yield node
            left.extend(ast.iter_child_nodes(node))


def is_no_use(node: ast.AST) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_set = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frozenset"
    return is_docstring or is_set


def members_in(*nodes: ast.AST) -> Iterator[str]:
    """``NAME`` of each ``Code.NAME`` among these nodes."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code":
            yield node.attr


# ---- cases ----


def test_every_code_of_files_has_a_case() -> None:
    """Each row of these tables is run and compared."""
    cases = json.loads((TESTS / "data" / "bad-inputs.json").read_text(encoding="utf-8"))["cases"]
    of_rules = NUMBER.findall((TESTS / "steps" / "specs" / "test_rules.py").read_text(encoding="utf-8"))
    in_tables = {expected["code"] for case in cases for expected in case["expect"]} | {*of_rules}

    assert [code for code in OF_FILES if code not in in_tables] == []


def test_every_code_of_a_run_is_asserted_in_a_test() -> None:
    checks = checks_by_code()
    left = {code: {*names_of(code), *checks[code.name]} for code in OF_RUNS}
    for file in TESTS.rglob("test_*.py"):
        may_have = {*re.findall(r"\w+", file.read_text(encoding="utf-8"))} if file != Path(__file__) else set()
        if any(names & may_have for names in left.values()):
            words = {*words_of(file)}
            left = {code: names for code, names in left.items() if not names & words}

    assert [*left] == []


def names_of(code: Code) -> Iterator[str]:
    """What a test may call the problem: the code, its member, the error that carries it."""
    yield from (code, code.name)
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, TopicopsError) and vars(error).get("code") == code:
            yield error.__name__


def checks_by_code() -> Mapping[str, set[str]]:
    """Ids of the checks of verify, by the member of the code that they give."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in (PRODUCT / "steps" / "verifying").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = set(members_in(*node.args, *(word.value for word in node.keywords)))
                ids = {name for name in given if NUMBER.fullmatch(name)}
                for name in given - ids:
                    found[name] |= ids
    return found


def words_of(file: Path) -> Iterator[str]:
    """Names and words in the code of a test; comments and docstrings do not count."""
    for node in nodes_of(file):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\w+", node.value)


def test_a_code_of_a_later_release_is_read_as_it_is_written() -> None:
    later = msgspec.json.decode(b'["TOP999", "TOP999", "Q99"]', type=tuple[Code, ...])
    assert later == ("TOP999", "TOP999", "Q99")
    assert len(set(later)) == 2
    assert msgspec.json.encode(later) == b'["TOP999","TOP999","Q99"]'


@pytest.mark.parametrize("text", ["TOP99", "top999", "V1", "", "SPARK-1"])
def test_what_has_not_the_form_of_a_code_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(text), type=Code)
