"""YAML is read in one place, which has the limits: no tags, no aliases, a depth, a size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import topicops

PACKAGE = Path(topicops.__file__).parent
READERS = {
    "edges/specs/fast_path.py": "events, which are counted",
    "edges/specs/reader.py": "events, which are limited",
}
"""Modules that may import yaml, and what they use it for."""
LOADERS = {"load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "compose", "compose_all"}


def test_no_other_module_imports_a_yaml_parser() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    sources = {name: text for name, text in texts.items() if "yaml" in text}
    assert {name for name, source in sources.items() if "yaml" in imported(source)} == set(READERS)
    assert [name for name, source in sources.items() if loads_yaml(source)] == []


def imported(source: str) -> Iterator[str]:
    """Yield the first word of each module that is imported, also within a function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def loads_yaml(source: str) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(
        isinstance(call, ast.Attribute)
        and call.attr in LOADERS
        and isinstance(call.value, ast.Name)
        and call.value.id == "yaml"
        for call in calls
    )
