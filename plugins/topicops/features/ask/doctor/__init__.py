"""``doctor``: what is wrong with a cluster, and what stands in the way of a migration to KRaft, by rules over facts."""
