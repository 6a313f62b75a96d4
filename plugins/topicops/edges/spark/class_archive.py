"""Create the class-data archive (CDS) from which Spark's driver starts faster.

``python -m topicops.edges.spark.class_archive`` creates it where none fits: 170 MB in the cache folder, in about a
minute. Decision 0012 has the gain. JDK 19 can do this alone (``-XX:+AutoCreateSharedArchive``): without Java 17 this
module can go.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.java import created_archive
from topicops.edges.spark.driver import archive_path, driver_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULE = "topicops.edges.spark.class_archive"
_TRAINING_TIMEOUT_S = 300.0


def train_archive() -> Path | None:
    """The archive for this Java and this Spark, created if it is missing; None when that fails."""
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
    """Load the classes that runs use: a diff, and the quality rules where Great Expectations is installed."""
    from topicops.edges.spark.diff import spark_diff
    from topicops.edges.spark.driver import training_driver
    from topicops.edges.spark.session import spark_session
    from topicops.model.plans.delta import DesiredRow, LiveRow

    driver = training_driver(archive)
    with spark_session("local[*]") as spark:
        for partitions in (1, 2):
            desired = [DesiredRow("topic", "present", partitions, 1, None, "{}")]
            spark_diff(spark, desired, [LiveRow("topic", 1, 1, 1, "", "{}")])
        if find_spec("great_expectations"):
            _load_quality_classes(spark)
    driver.end(timeout_s=_TRAINING_TIMEOUT_S)


def _load_quality_classes(spark: SparkSession) -> None:
    from topicops.edges.spark.quality import check_quality
    from topicops.model.runs.quality_rows import PartitionRow, SpecRow

    check_quality(spark, "before", {"spec": [SpecRow("topic", "topic.yaml", "", 1)]})
    offline = PartitionRow("topic", 0, -1, False, (1,), (), (1,), 1, 1, 1)
    check_quality(spark, "after", {"partition": [offline]}, earlier=lambda: {"partition": [offline]})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _load_classes(Path(sys.argv[1]))
    else:
        sys.stdout.write(f"Spark's class-data archive: {train_archive() or 'none, see the log'}\n")
