"""The spec files on disk: read, cached, repaired, written, and their place in git."""
