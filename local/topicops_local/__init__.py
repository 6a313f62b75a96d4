"""Servers of this machine, for trying out and for tests: a local cluster, and the demo with its Airflow."""
