"""``list``: live topics through the filters of Kafka's own ``kafka-topics --describe``."""
