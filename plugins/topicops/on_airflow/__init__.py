"""The Airflow part: tasks, DAGs, the provider's metadata and the plugin.

Only light imports at module level: Airflow loads these modules when it parses DAGs.
"""
