"""Kafka's controller under ZooKeeper as a pure model: events in; znodes, requests to brokers and new states out.

Imports ``model`` alone. Each rule names the class of Kafka that it was read in, and the release.
"""
