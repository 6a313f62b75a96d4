"""topicops: Kafka topics as reviewed YAML, planned against the live cluster, applied and verified.

Nothing heavy is imported here: Airflow loads this package whenever it parses a DAG file.
"""

__version__ = "0.1.0"
