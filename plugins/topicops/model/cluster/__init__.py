"""What was read from the live cluster: topics, brokers, and the facts that `doctor` needs."""
