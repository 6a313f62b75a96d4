"""The DAGs: what Airflow parses every half minute. Nothing here imports the steps or a client before a task runs."""
