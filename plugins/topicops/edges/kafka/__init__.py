"""Brokers through confluent-kafka and kafka-python: mutations, metadata, and the snapshot without ZooKeeper."""
