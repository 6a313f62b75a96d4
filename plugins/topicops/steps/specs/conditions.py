"""Read a condition of a quality rule without Spark. Spark gets what was read, so nothing runs that was not checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from topicops.model.errors import UsageError
from topicops.model.specs.environment import RowLevel

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 2_000
_DEEPEST = 40

_ROWS: Mapping[RowLevel, str] = {
    "spec": (
        "topic string; file string; owner string; domain string; lifecycle string; partitions int; "
        "replication_factor int; configs map<string,string>"
    ),
    "topic": (
        "topic string; is_managed boolean; partitions int; fewest_replicas int; most_replicas int; "
        "min_insync_replicas int; is_reassigning boolean; is_throttled boolean; configs map<string,string>"
    ),
    "partition": (
        "topic string; partition int; leader int; leader_is_live boolean; replicas array<int>; isr array<int>; "
        "missing_replicas array<int>; dead_replicas array<int>; min_isr int; racks_used int; racks_possible int"
    ),
    "broker": "broker bigint; preferred bigint; led bigint",
}
COLUMNS: Mapping[RowLevel, Mapping[str, str]] = {
    level: dict(column.split(" ", 1) for column in row.split("; ")) for level, row in _ROWS.items()
}
"""Columns of each level with their types in Spark. The frames that are judged have them; a test holds that."""

# fmt: off
_NODES = frozenset(
    {"column", "identifier", "literal", "boolean", "null", "paren", "lambda", "datatype", "bracket", "and", "or",
     "not", "eq", "neq", "gt", "gte", "lt", "lte", "nullsafeeq", "is", "in", "between", "like", "ilike", "escape",
     "dpipe", "add", "sub", "mul", "div", "intdiv", "mod", "neg", "case", "if", "cast", "trycast", "coalesce",
     "nullif", "greatest", "least", "abs", "ceil", "floor", "round", "lower", "upper", "length", "trim", "left",
     "right", "substring", "substringindex", "splitpart", "regexpsplit", "regexplike", "regexpextract",
     "regexpreplace", "concat", "concatws", "contains", "startswith", "endswith", "arraysize", "arraycontains",
     "arraymax", "arraymin", "arraydistinct", "arrayexcept", "arrayintersect", "arrayfilter", "exists", "transform",
     "mapkeys", "mapcontainskey"}
)
_BY_NAME = frozenset(
    {"arrays_overlap", "cardinality", "forall", "isnotnull", "isnull", "map_filter", "map_values", "pmod"}
)
_TYPES = frozenset({"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL", "TEXT"})
# fmt: on
"""What a condition may have in it: then its value is that of the row alone. Spark has functions that call any Java."""


class Condition(NamedTuple):
    sql: str
    columns: tuple[str, ...]
    """Columns that it reads, each once."""


def read_condition(text: str, level: RowLevel) -> Condition:
    """Read a condition on rows of a level. Raises ``UsageError``."""
    from sqlglot import exp

    if len(text) > LONGEST:
        raise UsageError(f"it has {len(text):,} characters, and may have {LONGEST:,}")
    try:
        sql = _checked(text, level).sql(dialect="spark", comments=False)
        read = _checked(sql, level)  # what Spark gets
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - sqlglot has many for what is no SQL
        found = getattr(error, "errors", None) or [{}]
        raise UsageError(f"it is no condition: {found[0].get('description') or type(error).__name__}") from None
    columns = (column.name.lower() for column in read.find_all(exp.Column, bfs=False))
    return Condition(sql, tuple(dict.fromkeys(columns)))


def _checked(text: str, level: RowLevel) -> exp.Expr:
    import sqlglot
    from sqlglot import TokenType, exp

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of what is refused here
    if any(
        one.token_type is other.token_type is TokenType.STRING
        for one, other in pairwise(sqlglot.tokenize(text, read="spark"))
    ):
        raise UsageError("two texts follow each other; write a quote in a text as \\'")
    read = sqlglot.parse(text, read="spark")
    if len(read) != 1 or not isinstance(read[0], exp.Condition):
        raise UsageError("it is not one condition")
    condition, known = read[0], COLUMNS[level]
    for node in condition.walk():
        _require_harmless(node)
        if isinstance(node, exp.Column) and (len(node.parts) > 1 or node.name.lower() not in known):
            raise UsageError(f"a row of level {level} has no column {node.sql()}; it has {', '.join(known)}")
    for part, found in _typed(condition, known):
        if found not in ("BOOLEAN", "UNKNOWN", "NULL"):
            raise UsageError(f"{part} is of type {found}, and must be true or false")
    return condition


def _require_harmless(node: exp.Expr) -> None:
    from sqlglot import exp

    if node.depth > _DEEPEST:
        raise UsageError("it is nested too deep")
    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in _BY_NAME:
            raise UsageError(f"the function {node.name} is not one that a rule can use")
    elif node.key not in _NODES:
        raise UsageError(f"{node.key} is not one of the parts that a rule can have")
    if isinstance(node, exp.In) and not node.args.get("expressions"):
        raise UsageError("IN must have a list of values")
    if isinstance(node, exp.DataType) and node.this.value not in _TYPES:
        raise UsageError(f"the type {node.this.value} is not one that a rule can use")


def _typed(condition: exp.Expr, columns: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the parts that must be true or false, and their types; the condition itself first."""
    from sqlglot import exp
    from sqlglot.optimizer.annotate_types import annotate_types

    typed = condition.copy()
    for column in typed.find_all(exp.Column):
        column.set("table", exp.to_identifier("rows"))
        column.this.set("this", column.name.lower())
    query = exp.select(typed.as_("holds")).from_("rows")
    [root] = annotate_types(query, schema={"rows": dict(columns)}, dialect="spark").selects
    parts = [root.this]
    for node in root.find_all(exp.And, exp.Or, exp.Not, exp.If):
        parts += [node.this, *([node.expression] if isinstance(node, exp.Connector) else [])]
    for part in parts:
        yield part.sql(dialect="spark").replace("rows.", ""), part.type.sql(dialect="spark") if part.type else "UNKNOWN"
