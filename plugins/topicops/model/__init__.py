"""The nouns: values that pass between the steps, and the ports through which the world arrives.

Imports nothing of the other folders, and no airflow, pyspark, kazoo, confluent_kafka, great_expectations or yaml.
"""
