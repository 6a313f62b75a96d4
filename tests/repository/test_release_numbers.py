"""Which release of Kafka can what is written in one module; no other one decides by a number of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "plugins" / "topicops"
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
