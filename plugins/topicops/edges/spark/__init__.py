"""Spark through PySpark, and Great Expectations on it: the session, the diff, the quality rules."""
