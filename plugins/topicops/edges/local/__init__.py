"""The embedded cluster and the demo's Airflow: jars, server files, processes, readiness."""
