"""A run in which nothing differs from the last good one ends after its snapshot."""
