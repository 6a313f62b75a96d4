"""``python -m benchmarks.size [FOLDER]``: how much code there is, one row for each room of the package, and the limits.

It is no part of ``python -m benchmarks``: nothing is timed. Exit status 1: a limit of ``LIMITS`` is passed.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOOP = ("model", "controller", "steps", "edges", "flow")
"""Rooms of the loop: specs, read, plan, apply, verify, report."""
MOST_SIBLINGS = 14
"""Modules and packages in one folder."""
LIMITS = {"package": 55_000, "loop": 31_000}
"""Lines, at most."""
HEADER = ("room", "files", "lines", "code", "docs", "late imports")


@dataclass(frozen=True, slots=True)
class Size:
    """What was counted in some files."""

    files: int = 0
    lines: int = 0
    code: int = 0
    """Lines with a token of code, without imports and docstrings."""
    docs: int = 0
    """Lines of docstrings, and of strings below a field."""
    late_imports: int = 0
    """Import statements inside functions."""

    def __add__(self, other: Size) -> Size:
        return Size(
            self.files + other.files,
            self.lines + other.lines,
            self.code + other.code,
            self.docs + other.docs,
            self.late_imports + other.late_imports,
        )


def size_of(source: str) -> Size:
    """Count one module."""
    tree = ast.parse(source)
    docs = {line for node in ast.walk(tree) if _is_text(node) for line in _lines_of(node)}
    imports = {line for node in ast.walk(tree) if _is_import(node) for line in _lines_of(node)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    used = {line for token in tokens if token.type not in silent for line in range(token.start[0], token.end[0] + 1)}
    return Size(
        files=1,
        lines=len(source.splitlines()),
        code=len(used - docs - imports),
        docs=len(docs),
        late_imports=sum(map(_is_import, _inside_functions(tree))),
    )


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _lines_of(node: ast.AST) -> range:
    return range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) + 1)


def _inside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return iter({id(node): node for function in functions for node in ast.walk(function)}.values())


def rooms(package: Path) -> Mapping[str, Size]:
    """Sizes by folder, two levels deep: ``steps/planning`` with all that is below it."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        room = "/".join(path.relative_to(package).parts[:-1][:2]) or "."
        found[room] = found.get(room, Size()) + size_of(path.read_text(encoding="utf-8"))
    return found


def crowded(package: Path) -> Mapping[str, int]:
    """Folders with more than ``MOST_SIBLINGS`` modules and packages."""
    folders = {path.parent for path in package.rglob("*.py")}
    counts = {str(folder.relative_to(package)): len(_siblings(folder)) for folder in folders}
    return {name: count for name, count in sorted(counts.items()) if count > MOST_SIBLINGS}


def _siblings(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]


def sums(found: Mapping[str, Size]) -> Mapping[str, Size]:
    """Sizes of the package and of the loop."""
    loop = (size for room, size in found.items() if room.split("/")[0] in LOOP)
    return {"package": sum(found.values(), Size()), "loop": sum(loop, Size())}


def table(sizes: Mapping[str, Size]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for name, size in sizes.items():
        yield f"| {name} | {size.files} | {size.lines} | {size.code} | {size.docs} | {size.late_imports} |"


def passed(totals: Mapping[str, Size], full: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each limit that is passed."""
    for name, limit in LIMITS.items():
        if totals[name].lines > limit:
            yield f"{name}: {totals[name].lines} lines, more than {limit}"
    for folder, count in full.items():
        yield f"{folder}: {count} siblings, more than {MOST_SIBLINGS}"


def main(arguments: Iterable[str]) -> int:
    root = Path(next(iter(arguments), ROOT))
    package, found = root / "plugins" / "topicops", rooms(root / "plugins" / "topicops")
    totals = sums(found)
    others = {name: sum(rooms(root / name).values(), Size()) for name in ("local", "tests")}
    sizes = {**found, **totals, **others}
    problems = list(passed(totals, crowded(package)))
    print("\n".join([*table(sizes), "", *problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
