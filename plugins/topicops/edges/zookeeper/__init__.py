"""ZooKeeper through kazoo: the snapshot, the lease, and what `doctor` asks the servers. Never writes Kafka's paths."""
