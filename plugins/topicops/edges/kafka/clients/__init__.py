"""Two Kafka clients with the same settings: confluent-kafka's, and kafka-python's connections to named brokers."""
