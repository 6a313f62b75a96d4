"""Create the class-data archive (CDS) from which Spark's driver starts faster.

``topicops local spark archive`` creates it where none fits: 190 MB in the cache folder, in about a minute. Decision
0012 has the gain. JDK 19 can do this alone (``-XX:+AutoCreateSharedArchive``): without Java 17 this module can go.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from topicops.features.shared.java import created_archive
from topicops.features.spark.edges.driver import archive_path, driver_java
from topicops.features.spark.settings import DEFAULT, SETTING
from topicops.model.errors import TopicopsError

_MODULE = "topicops.features.spark.edges.class_archive"
_TRAINING_TIMEOUT_S = 300.0


def lacks_archive() -> bool:
    """Return whether Spark runs on this machine, and starts without an archive."""
    if not (os.environ.get(SETTING) or DEFAULT).startswith("local"):
        return False
    try:
        return not archive_path(driver_java()).is_file()
    except TopicopsError:
        return False  # without a Java nothing starts


def train_archive() -> Path | None:
    """Return the archive for this Java and this Spark, created if it is missing; None when that fails."""
    return created_archive("Spark", lambda: archive_path(driver_java()), _train)


def _train(archive: Path) -> None:
    """Run a process of its own, because the JVM writes the archive when it ends; then rename the complete file."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{archive.stem}-", dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        subprocess.run(
            [sys.executable, "-m", _MODULE, str(made)], check=True, timeout=_TRAINING_TIMEOUT_S, capture_output=True
        )
        made.replace(archive)


def _load_classes(archive: Path) -> None:
    from topicops.features.spark.edges.driver import training_driver
    from topicops.features.spark.edges.session import spark_session
    from topicops.features.spark.edges.warm_up import warm_up

    driver = training_driver(archive)
    with spark_session("local[*]") as spark:
        warm_up(spark)
    driver.end(timeout_s=_TRAINING_TIMEOUT_S)


if __name__ == "__main__":
    _load_classes(Path(sys.argv[1]))
