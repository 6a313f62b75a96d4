"""Kafka's controller as a pure model; filled when a plan can be rehearsed on it.

Imports ``model`` only.
"""
