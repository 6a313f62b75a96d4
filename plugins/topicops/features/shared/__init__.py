"""What several features need, and the loop does not: spec files as text, HTML, processes, Airflow's REST API."""
