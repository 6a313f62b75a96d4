"""The local cluster and the demo's Airflow: jars, server files, state, processes, readiness."""
