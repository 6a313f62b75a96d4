"""Commands that read or change a live cluster, or the records of it."""
