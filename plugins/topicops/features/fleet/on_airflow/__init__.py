"""The DAG of all environments together, and its task."""
