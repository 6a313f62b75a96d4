"""``drift``: where the live cluster differs from the files now, or since when."""
