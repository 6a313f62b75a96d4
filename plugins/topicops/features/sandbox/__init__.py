"""Servers of this machine: the local cluster, and the demo with its Airflow."""
