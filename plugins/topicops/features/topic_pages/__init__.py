"""The topic index, and the pages Topics, Topic and Brokers in Airflow, which are read from it."""
