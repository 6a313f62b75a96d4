"""The parts of an install: the base alone, or with Spark, data quality, Airflow and servers of this machine.

``pyproject.toml`` names the packages of each extra. Only this module knows how to find out which are installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Literal

from topicops.model.errors import MissingExtraError

Extra = Literal["spark", "quality", "airflow", "local", "aws", "google", "store", "zookeeper-sasl"]
_MODULES: Mapping[Extra, tuple[str, ...]] = {
    "spark": ("pyspark", "pyarrow"),
    "quality": ("great_expectations", "pyspark", "pyarrow"),
    "airflow": ("airflow", "great_expectations", "pyspark", "pyarrow"),
    "local": ("topicops_local",),
    "aws": ("aws_msk_iam_sasl_signer",),
    "google": ("google.auth", "requests"),
    "zookeeper-sasl": ("puresasl",),
    "store": ("obstore",),
}
"""Modules of each extra: if they are found, it is installed. Their own dependencies come with them.

The extra ``connect`` brings those of ``spark``, and a Spark that only talks to a Connect server.
"""
_TITLES: Mapping[Extra, str] = {
    "spark": "Spark",
    "quality": "Great Expectations",
    "airflow": "Airflow",
    "local": "The local cluster",
    "aws": "Amazon MSK's login",
    "google": "Google's login",
    "zookeeper-sasl": "What a login of ZooKeeper needs",
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
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a package above it
        return False
    return spec is not None and spec.origin is not None
