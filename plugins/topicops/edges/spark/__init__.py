"""Spark by PySpark, and Great Expectations on Spark: the session, the diff, the quality rules."""
