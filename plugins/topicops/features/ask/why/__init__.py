"""``why``: the causes of a topic's state, by rules over its znodes and its brokers' answers, and each way out."""
