"""What no module of the package does: backtrack, parse YAML beside the one reader, name a release, write "topic(s)"."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import translate
from functools import partial
from itertools import permutations, product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from topicops.model.specs.topic_config import TOPIC_CONFIGS

PACKAGE = Path(__file__).parents[2] / "plugins" / "topicops"
ANYWHERE = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
"""Methods that try an expression at every place of a text."""
SEARCHED = re.compile(rf"\b(\w+)\s*\.\s*(?:{'|'.join(sorted(ANYWHERE))})\b")
"""A name that is searched for, also where a comment says so."""
MAY_HAVE_ONE = re.compile(r"\bre\s*\.|\bpattern\b")
PUMPED = 8_000
FIRST = (20, 30, 45, 70, 100, PUMPED)
"""Lengths of the first texts; a short one that takes long shows that the work doubles with every few characters."""
QUICK_S = 0.004
"""Linear work on any of them takes at most half of it; quadratic work on the last one, at least twice as long."""
SLOW_S = 10 * QUICK_S
"""What one measure alone may find of linear work on a busy machine; if it is more, no other is needed."""
LENGTHS = (1_000, 8_000)
STEEPEST = 24.0
"""From one of these lengths to the other, linear work becomes 8 times as long, quadratic work 64 times."""


@dataclass(frozen=True)
class Expression:
    place: str
    """``edges/specs/reader.py:FORBIDDEN``; the line instead of a name where there is none."""
    pattern: re.Pattern[Any]
    is_searched: bool
    """False: it is only matched at the start of a text."""


@dataclass(frozen=True)
class Dynamic:
    """A call of ``re`` whose expression is known only when it runs."""

    place: str


def expressions(package: Path = PACKAGE) -> Iterator[Expression | Dynamic]:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    searched = {name for source in sources.values() for name in SEARCHED.findall(source)}
    for path, source in sources.items():
        if not MAY_HAVE_ONE.search(source):
            continue
        tree = ast.parse(source)
        names = _assigned(tree)
        for call in _calls(tree):
            place = f"{path.relative_to(package).as_posix()}:{names.get(id(call), call.lineno)}"
            pattern = _evaluated(call, tree)
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            is_searched = method in ANYWHERE or names.get(id(call)) in searched or _is_unnamed(call, method, names)
            yield Dynamic(place) if pattern is None else Expression(place, pattern, is_searched)


def _is_unnamed(call: ast.Call, method: str, names: Mapping[int, str]) -> bool:
    """Return whether its uses cannot be found, so that it may be searched for."""
    return id(call) not in names and method not in ("match", "fullmatch")


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of ``re``, and annotations that hold a text to a pattern."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_is_of_re(node.func) or _pattern_keyword(node)):
            yield node


def _is_of_re(function: ast.expr) -> bool:
    known = {"compile", "match", "fullmatch", *ANYWHERE}
    is_attribute = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    return is_attribute and function.value.id == "re" and function.attr in known  # type: ignore[attr-defined]


def _pattern_keyword(call: ast.Call) -> ast.expr | None:
    """Return the expression of ``Meta(pattern=…)``, and of ``SchemaValidator({"pattern": …})``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "SchemaValidator" and isinstance(schema := call.args[0], ast.Dict):
        pairs = zip(schema.keys, schema.values, strict=True)
        return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "pattern"), None)
    found = (keyword.value for keyword in call.keywords if keyword.arg == "pattern")
    return next(found, None) if name in ("Meta", "StringConstraints", "Field") else None


def _assigned(tree: ast.Module) -> Mapping[int, str]:
    """By the identity of a call, the module's name for what it gives."""
    return {
        id(node.value): node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def _evaluated(call: ast.Call, tree: ast.Module) -> re.Pattern[Any] | None:
    arguments = [_pattern_keyword(call) or call.args[0]]
    arguments += [node for node in (*call.args[1:], *_flags(call)) if "re." in ast.unparse(node)]
    texts: dict[str, object] = {"re": re}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(
            node.value, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Tuple
        ):
            with suppress(NameError):
                exec(compile(ast.Module([node], []), "", "exec"), texts)
    try:
        values = [eval(compile(ast.Expression(argument), "", "eval"), texts) for argument in arguments]
    except NameError:
        return None
    return re.compile(*values)


def _flags(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == "flags"]


# ---- texts ----


def slow_text(pattern: re.Pattern[Any], *, is_searched: bool) -> tuple[str, list[float]] | None:
    """A text whose work grows faster than its length, and its seconds at ``LENGTHS``, unless exponential; else None."""
    tried = [pattern.match, pattern.fullmatch, *([pattern.search] if is_searched else [])]
    for prefix, pump, suffix in texts(pattern):
        for match in tried:
            seconds = partial(_seconds, match, prefix, pump, suffix)
            length = next((n for n in FIRST if _is_slow(seconds, n)), None)
            if length is None:
                continue
            if length < PUMPED:
                return f"{prefix!r} + {pump!r} * n + {suffix!r}", []
            for of in (2, 4):
                took = [_fastest(seconds, length, of=of) for length in LENGTHS]
                if took[-1] <= STEEPEST * took[0]:
                    break
            else:
                return f"{prefix!r} + {pump!r} * n + {suffix!r}", took
    return None


def _is_slow(seconds: Callable[[int], float], length: int) -> bool:
    first = seconds(length)
    return first > SLOW_S or (first > QUICK_S and _fastest(seconds, length, of=8) > QUICK_S)


def _fastest(seconds: Callable[[int], float], length: int, *, of: int) -> float:
    """Of so many: on a busy machine one measure alone may be ten times too long."""
    return min(seconds(length) for _ in range(of))


def _seconds(match: Callable[[Any], object], prefix: str, pump: str, suffix: str, length: int) -> float:
    text: str | bytes = prefix + pump * (length // len(pump)) + suffix
    if isinstance(match.__self__.pattern, bytes):  # type: ignore[attr-defined]
        text = text.encode()
    started = time.thread_time()
    match(text)
    return time.thread_time() - started


def texts(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what stands before, what is repeated, and what stands after it: from the pattern's own characters."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE)
    prefixes = dict.fromkeys(["", *_prefixes(tree, "")])
    alphabet = list(dict.fromkeys(_characters(tree)))[:10]
    pumps = dict.fromkeys([*alphabet, *prefixes, *_bodies(tree), *map("".join, permutations(alphabet[:6], 2))])
    suffixes = dict.fromkeys(["", "\0", *alphabet[:1]])
    yield from ((before, pump, after) for before, pump, after in product(prefixes, pumps, suffixes) if pump)


def _prefixes(tree: Sequence[Any], before: str) -> Iterator[str]:
    """Yield a text that leads to each repetition."""
    for kind, value in tree:
        for below in _below(kind, value):
            yield from _prefixes(below, before)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[1] > 20:
            yield before
        before += _sample([(kind, value)])


def _bodies(tree: Sequence[Any]) -> Iterator[str]:
    for kind, value in tree:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield _sample(value[2])
        for below in _below(kind, value):
            yield from _bodies(below)


def _characters(tree: Sequence[Any]) -> Iterator[str]:
    for kind, value in tree:
        match kind:
            case op.LITERAL:
                yield chr(value)
            case op.NOT_LITERAL | op.ANY:
                yield from "a 0" if value is None else (c for c in "a 0" if ord(c) != value)
            case op.IN:
                yield from _of_class(value)
            case _:
                for below in _below(kind, value):
                    yield from _characters(below)


def _of_class(items: Sequence[Any]) -> Iterator[str]:
    if items[0][0] is op.NEGATE:
        excluded = set(_of_class(items[1:]))
        yield from (character for character in "a 0,\\" if character not in excluded)
        return
    for kind, value in items:
        match kind:
            case op.LITERAL:
                yield chr(value)
            case op.RANGE:
                yield chr(value[0])
            case op.CATEGORY:
                yield {"DIGIT": "0", "SPACE": " ", "WORD": "a"}.get(str(value).removeprefix("CATEGORY_"), "!")


def _below(kind: Any, value: Any) -> list[Sequence[Any]]:
    match kind:
        case op.SUBPATTERN:
            return [value[3]]
        case op.BRANCH:
            return list(value[1])
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return [value[2]]
        case op.ATOMIC_GROUP:
            return [value]
        case op.ASSERT | op.ASSERT_NOT:
            return [value[1]]
        case _:
            return []


def _sample(tree: Sequence[Any]) -> str:
    """Return a short text that the expression matches, apart from what must stand around it."""
    return "".join(_sample_of(kind, value) for kind, value in tree)


def _sample_of(kind: Any, value: Any) -> str:
    match kind:
        case op.SUBPATTERN | op.ATOMIC_GROUP:
            return _sample(value[3] if kind is op.SUBPATTERN else value)
        case op.BRANCH:
            return _sample(value[1][0])
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return _sample(value[2]) * min(value[0], 30)
        case op.LITERAL | op.NOT_LITERAL | op.ANY | op.IN:
            return next(_characters([(kind, value)]), "a")
        case _:
            return ""


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
    "features/files/authoring/takeover/edges/texts.py": "events, which are limited; other tools use all of YAML",
}
"""Modules that may import yaml, and what they use it for."""
IMPORTS_YAML = re.compile(r"^\s*(?:from\s+yaml\b|import\b[^#\n]*\byaml\b)", re.MULTILINE)
LOADS_YAML = re.compile(r"\byaml\s*\.\s*(?:(?:safe_|full_|unsafe_)?load|compose)(?:_all)?\b")


def test_no_other_module_imports_a_yaml_parser() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert {name for name, text in texts.items() if IMPORTS_YAML.search(text)} == READERS.keys()
    assert [name for name, text in texts.items() if LOADS_YAML.search(text)] == []


# ---- one module says which release of Kafka can what ----


EXEMPT = {"model/release.py": "the one module"}
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


def test_no_text_leaves_the_number_to_the_reader() -> None:
    left = re.compile(r"\b(?:broker|change|delete|error|file|line|partition|replica|rule|run|topic)\(s\)")
    found = [(path.name, each[0]) for path in PACKAGE.rglob("*.py") for each in left.finditer(path.read_text("utf-8"))]
    assert found == []
