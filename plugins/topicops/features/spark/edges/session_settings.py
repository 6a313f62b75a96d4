"""The settings of every session, on this machine, on a cluster and on Spark Connect.

What carries meaning is pinned, so that each Spark gives the same bytes; what carries speed follows the number of rows.
A setting of a user that would change one of them, that Spark does not know, or that does nothing is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from topicops.features.spark.settings import CONF_SETTING, MEMORY_SETTING, SparkPlace
from topicops.model.errors import UsageError
from topicops.model.printable import printable

MEANING: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
}
_FEW_ROWS = 20_000
"""Compiling a query takes seconds, and reading so few rows does not: Spark interprets it."""
_MANY_ROWS = 1_000_000
"""From here on Spark plans between the stages too, each a job of its own, and sends small sides to all tasks."""
_ROWS_OF_A_TASK = 50_000
_FEWEST_TASKS = 2

_BY_US = "topicops sets it for every run"
_BY_ROWS = "topicops sets it from the number of rows"
_AT_THE_START = "the driver's Java process has started by then"
_OVERRIDDEN: Mapping[str, str] = {
    **dict.fromkeys(MEANING, _BY_US),
    "spark.sql.shuffle.partitions": _BY_ROWS,
    "spark.sql.adaptive.enabled": _BY_ROWS,
    "spark.sql.autoBroadcastJoinThreshold": _BY_ROWS,
    "spark.sql.codegen.wholeStage": _BY_ROWS,
    "spark.sql.codegen.factoryMode": _BY_ROWS,
    "spark.sql.execution.useHashAggregateExec": _BY_ROWS,
    "spark.master": "TOPICOPS_SPARK says where Spark runs",
    "spark.remote": "TOPICOPS_SPARK says where Spark runs",
    "spark.submit.deployMode": "topicops is the driver itself",
}
_ON_LOCAL: Mapping[str, str] = {
    "spark.driver.memory": f"{MEMORY_SETTING} gives the driver's memory",
    "spark.driver.extraJavaOptions": _AT_THE_START,
    "spark.driver.defaultJavaOptions": _AT_THE_START,
    "spark.driver.extraClassPath": _AT_THE_START,
    "spark.driver.extraLibraryPath": _AT_THE_START,
    "spark.jars.packages": _AT_THE_START,
    "spark.local.dir": "the driver writes into a folder of its own, below TMPDIR",
}
_NOT_ON_LOCAL = (
    "executor",
    "cores",
    "dynamicAllocation",
    "kerberos",
    "yarn",
    "kubernetes",
    "submit",
    "worker",
    "deploy",
)
"""Families of settings, after ``spark.``, of which a Spark on this machine uses none."""


def settings_for(rows: int) -> Mapping[str, str]:
    """Return what makes a query over so many rows fast; 0 means that the number is not known."""
    few, many = 0 < rows <= _FEW_ROWS, not 0 < rows < _MANY_ROWS
    return {
        "spark.sql.shuffle.partitions": str(max(_FEWEST_TASKS, -(-rows // _ROWS_OF_A_TASK))),
        "spark.sql.adaptive.enabled": _word(many),
        "spark.sql.autoBroadcastJoinThreshold": "10MB" if many else "-1",
        "spark.sql.codegen.wholeStage": _word(not few),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN" if few else "FALLBACK",
        "spark.sql.execution.useHashAggregateExec": _word(not few),  # it compiles even if codegen is off
    }


def require_effective(place: SparkPlace) -> None:
    """Raise ``UsageError`` for a setting that topicops overrides, or that does nothing where Spark runs."""
    for name in place.conf:
        if reason := _without_effect(place, name):
            raise UsageError(f"{place.named}: {name} has no effect: {reason}; {_remove(place)}")


def require_known(place: SparkPlace, known: Collection[str]) -> None:
    """Raise ``UsageError`` for a name that Spark does not know, and that looks like one that it knows.

    Other unknown names stay: they may be of a jar, or of a user's own.
    """
    for name in place.conf.keys() - set(known):
        if any(name.startswith(f"{declared}.") for declared in known):
            continue  # an option of what that setting names, such as a catalog
        if near := get_close_matches(name, known, n=1, cutoff=0.9):
            raise UsageError(
                f"{place.named}: Spark knows no setting {printable(name)}; if you mean {near[0]}, correct it; else "
                f"{_remove(place)}"
            )


def _without_effect(place: SparkPlace, name: str) -> str | None:
    if reason := _OVERRIDDEN.get(name):
        return reason
    if place.kind != "local":
        return None
    family = name.split(".")[1]
    return _ON_LOCAL.get(name) or ("Spark runs on this machine alone" if family in _NOT_ON_LOCAL else None)


def _remove(place: SparkPlace) -> str:
    return f"remove it from {CONF_SETTING}{' or the connection' if '(' in place.named else ''}"


def _word(yes: bool) -> str:
    return "true" if yes else "false"
