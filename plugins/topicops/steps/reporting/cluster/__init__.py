"""What a command read from the live cluster: drift, rehearsals, listed topics."""
