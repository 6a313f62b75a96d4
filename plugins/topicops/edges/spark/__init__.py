"""Spark by PySpark, and Great Expectations on Spark: the session, the diff, the quality rules. Needs its extra."""

from topicops.edges.extras import require_extra

require_extra("spark")
