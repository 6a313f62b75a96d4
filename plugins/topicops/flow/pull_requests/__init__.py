"""Pull requests with git, a forge, the cluster and Airflow plugged in: one module for each ``topicops ci`` command."""
