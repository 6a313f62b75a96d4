"""Servers of this machine: the local cluster, Spark that stays up, and the demo with its Airflow."""
