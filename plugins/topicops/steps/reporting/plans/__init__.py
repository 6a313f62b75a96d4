"""Plans as text and Markdown."""
