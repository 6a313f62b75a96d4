"""Spark compares files and cluster, from a number of topics on: where it runs, and the engine. ``edges``: PySpark."""
