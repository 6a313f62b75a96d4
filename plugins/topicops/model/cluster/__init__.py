"""What was read from the live cluster: topics, brokers, and their defaults."""
