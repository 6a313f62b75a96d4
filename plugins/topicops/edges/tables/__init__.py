"""A run's data as tables in columns: what `validate` and `snapshot` write once, and all later steps read."""
