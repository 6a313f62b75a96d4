"""``explain``: where each value of a topic comes from, and what each code means."""
