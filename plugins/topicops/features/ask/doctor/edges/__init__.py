"""What only ``doctor`` asks ZooKeeper and the brokers. Nothing is written, and no change is tried."""
