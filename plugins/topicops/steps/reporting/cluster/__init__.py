"""What a command read from the live cluster: doctor findings, drift, listed topics."""
