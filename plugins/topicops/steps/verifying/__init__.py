"""Is the cluster as planned: observations of both sources, the checks on them, and the watch that waits for them."""
