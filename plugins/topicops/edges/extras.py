"""The parts of an install: the base alone, or with Spark, data quality, Airflow and servers of this machine.

``pyproject.toml`` names the packages of each extra. Only this module knows how to find out which are installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Literal

from topicops.model.errors import MissingExtraError

Extra = Literal["spark", "quality", "airflow", "local", "store"]
_MODULES: Mapping[Extra, tuple[str, ...]] = {
    "spark": ("pyspark", "pyarrow"),
    "quality": ("great_expectations", "pyspark", "pyarrow"),
    "airflow": ("airflow", "great_expectations", "pyspark", "pyarrow"),
    "local": ("topicops_local",),
    "store": ("obstore",),
}
"""Modules of each extra: if they are found, it is installed. Their own dependencies come with them."""
_TITLES: Mapping[Extra, str] = {
    "spark": "Spark",
    "quality": "Great Expectations",
    "airflow": "Airflow",
    "local": "The local cluster",
    "store": "The client of object stores",
}


def has_extra(extra: Extra) -> bool:
    """Return whether the packages of the extra are installed; imports none of them."""
    return all(map(_is_installed, _MODULES[extra]))


def require_extra(extra: Extra) -> None:
    """Raise ``MissingExtraError``, whose text names the command that installs it, unless the extra is installed."""
    if not has_extra(extra):
        raise MissingExtraError(extra, _TITLES[extra])


def _is_installed(module: str) -> bool:
    """Return whether the module is installed: a mere folder of that name has no ``__init__.py``."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None
