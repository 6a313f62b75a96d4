"""Create the class-data archive (CDS) from which Spark's driver starts faster.

``topicops spark archive`` creates it where none fits: 190 MB in the cache folder, in about a minute. Decision
0012 has the gain. JDK 19 can do this alone (``-XX:+AutoCreateSharedArchive``): without Java 17 this module can go.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from topicops.features.shared.java import created_archive
from topicops.features.spark.edges.driver import archive_path, driver_java

_MODULE = "topicops.features.spark.edges.class_archive"
_TRAINING_TIMEOUT_S = 300.0


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


_QUERY = """
WITH compared AS (
  SELECT coalesce(one.topic, other.topic) AS topic, struct(one.*) AS live, one.replicas, one.isr,
    array_compact(array(CASE WHEN one.configs <> other.configs THEN 'configs' END)) AS changed,
    count(1) OVER (PARTITION BY one.topic) AS times, from_json(one.configs, 'map<string,string>') AS configs
  FROM rows one FULL OUTER JOIN rows other ON one.topic = other.topic),
judged AS (
  SELECT explode(flatten(array(
      transform(replicas, b -> struct('replicas' AS counted, b AS broker)),
      transform(filter(replicas, b -> NOT array_contains(isr, b)), b -> struct('behind' AS counted, b AS broker))
    ))) AS item,
    to_json(struct(topic, size(array_distinct(isr)), map_keys(configs)[0])) AS shown, times
  FROM compared WHERE size(changed) = 0 AND live IS NOT NULL)
SELECT * FROM (SELECT item.counted, sum(least(times, 9)) AS rows, max(shown) AS shown FROM judged GROUP BY item.counted)
UNION ALL (SELECT 'first', times, shown FROM judged ORDER BY shown LIMIT 1)
"""
"""A query with what the queries of runs have: joins, groups, windows, structs, maps, lambdas, JSON, order."""


def _load_classes(archive: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from topicops.features.spark.edges.driver import training_driver
    from topicops.features.spark.edges.session import arrow_frame, arrow_rows, spark_session, spark_step

    driver = training_driver(archive)
    rows = pa.table({"topic": ["a", "b"], "configs": ['{"a": "1"}'] * 2, "replicas": [[1, 2]] * 2, "isr": [[1]] * 2})
    with spark_session("local[*]") as spark, tempfile.TemporaryDirectory() as folder:
        pq.write_table(rows, f"{folder}/rows.parquet")
        for frame, size in product((spark.read.parquet(folder), arrow_frame(spark, rows)), (1, 0)):
            frame.createOrReplaceTempView("rows")
            with spark_step(spark, "training", rows=size):  # few rows are interpreted
                arrow_rows(spark.sql(_QUERY))
    driver.end(timeout_s=_TRAINING_TIMEOUT_S)


if __name__ == "__main__":
    _load_classes(Path(sys.argv[1]))
