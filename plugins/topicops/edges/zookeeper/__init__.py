"""ZooKeeper through kazoo: the snapshot and the lease. Never writes Kafka's paths."""
