"""``doctor``: problems of a cluster, and obstacles to a migration to KRaft, by rules over facts."""
