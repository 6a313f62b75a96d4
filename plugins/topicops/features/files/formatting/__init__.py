"""The standard form of spec files, in which ``topicops fmt`` writes them."""
