"""Moves carried on: a step, what it reads, decides and sends, and how it is taken on a real cluster."""
