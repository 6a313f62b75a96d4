"""The spec files on disk: read, written, and their place in git."""
