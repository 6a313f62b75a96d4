"""Many environments in one run: their plans, drift and health, by commands and by a DAG."""
