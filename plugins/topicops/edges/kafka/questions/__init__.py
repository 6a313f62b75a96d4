"""What is asked of brokers, and what an answer means. Nothing here writes."""
