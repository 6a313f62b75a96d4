"""The history of runs: the rows that a run leaves, and the spans of time that they add up to. Pure functions."""
