"""Read a condition of a quality rule without Spark: its columns, and what is wrong with it.

Spark gets the condition as it was read here, so nothing runs that was not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from topicops.model.specs.environment import RowLevel

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 2_000  # characters


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
"""Columns of each level with their types in Spark. The frames of ``features.quality`` have them; a test holds that."""

# fmt: off
_FUNCTIONS = frozenset(
    {
        "abs", "and", "or", "if", "case", "cast", "trycast", "coalesce", "nullif", "greatest", "least", "ceil",
        "floor", "round", "lower", "upper", "length", "trim", "left", "right", "substring", "substringindex",
        "split", "splitpart", "regexpsplit", "regexplike", "regexpextract", "regexpreplace", "concat",
        "concatws", "contains", "startswith", "endswith", "arraysize", "arraycontains", "arraymax", "arraymin",
        "arraydistinct", "arrayexcept", "arrayintersect", "arrayfilter", "exists", "transform", "mapkeys",
        "mapcontainskey", "forall", "arrays_overlap", "cardinality", "map_values", "map_filter", "pmod",
        "bigint", "isnull", "isnotnull",
    }
)
# fmt: on
"""Functions whose value is that of their arguments alone. Spark has others that call any code of Java."""


class ConditionError(ValueError):
    """The condition cannot be used; the text says why."""


def read_condition(text: str, level: RowLevel) -> exp.Expr:
    """Read a condition on rows of a level. Raises ``ConditionError``."""
    import sqlglot
    from sqlglot import exp

    if len(text) > LONGEST:
        raise ConditionError(f"it has {len(text):,} characters, and may have {LONGEST:,}")
    try:
        read = sqlglot.parse(text, read="spark")
    except sqlglot.ParseError as error:
        raise ConditionError(f"it is no condition in SQL: {error.errors[0]['description']}") from None
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise ConditionError(f"it is no condition in SQL: {type(error).__name__}") from None
    if len(read) != 1 or not isinstance(read[0], exp.Condition):
        raise ConditionError("it is not one condition")
    condition, known = read[0], COLUMNS[level]
    if condition.find(exp.Query, exp.Placeholder, exp.Parameter):
        raise ConditionError("it has a query or a parameter in it, and can only look at one row")
    for function in condition.find_all(exp.Func):
        name = function.name.lower() if isinstance(function, exp.Anonymous) else function.key
        if name not in _FUNCTIONS:
            raise ConditionError(f"the function {name} is not one that a rule can use")
    for column in condition.find_all(exp.Column):
        if column.sql().lower() not in known:
            raise ConditionError(f"a row of level {level} has no column {column.sql()}; it has {', '.join(known)}")
    found = _type_of(condition, known)
    if found not in ("BOOLEAN", "UNKNOWN"):
        raise ConditionError(f"its value is of type {found}, and must be true or false")
    return condition


def spark_sql(condition: exp.Expr) -> str:
    """Return the condition for Spark, from what was read; comments are left out."""
    return condition.sql(dialect="spark", comments=False)


def columns_of(condition: exp.Expr) -> Sequence[str]:
    """Return the columns that a condition reads, each once, in its order."""
    from sqlglot import exp

    return list(dict.fromkeys(column.name.lower() for column in condition.find_all(exp.Column, bfs=False)))


def _type_of(condition: exp.Expr, columns: Mapping[str, str]) -> str:
    from sqlglot import exp
    from sqlglot.optimizer.annotate_types import annotate_types

    typed = condition.copy()
    for column in typed.find_all(exp.Column):
        column.set("table", exp.to_identifier("rows"))
        column.this.set("this", column.name.lower())
    query = annotate_types(
        exp.select(typed.as_("holds")).from_("rows"), schema={"rows": dict(columns)}, dialect="spark"
    )
    found = query.selects[0].type
    return found.sql(dialect="spark") if found else "UNKNOWN"
