"""``$TOPICOPS_HOME/history``: rows of each run in Parquet, compacted by day and by month. Without Spark."""
