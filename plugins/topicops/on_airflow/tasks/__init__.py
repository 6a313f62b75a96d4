"""What the tasks of the DAGs do. DAG files are parsed without this package: it is imported when a task runs."""
