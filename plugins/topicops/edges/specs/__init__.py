"""The spec files on disk: read, cached, written, and their place in git."""
