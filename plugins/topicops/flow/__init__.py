"""The steps with the outside world plugged in: each takes values and gives values, and ``runs.kept`` writes them down.

Commands and Airflow tasks both call these functions, so that they cannot differ. ``access`` is the only place that
chooses which edge fills which port. Heavy edges (Spark, brokers, ZooKeeper) are imported by the step that needs them;
a module that Airflow imports to parse a DAG file imports this package inside its functions.
"""
