"""``doctor``: problems of a cluster, by rules over facts."""
