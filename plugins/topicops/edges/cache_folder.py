"""The folder of what can be made or fetched again: jars, class archives of Spark and Kafka, parsed specs."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """``$TOPICOPS_CACHE``, else ``$XDG_CACHE_HOME/topicops``, else ``~/.cache/topicops``."""
    if own := os.environ.get("TOPICOPS_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "topicops"
