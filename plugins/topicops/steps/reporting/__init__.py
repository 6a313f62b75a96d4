"""What people and programs read: plans, reports, drift and doctor findings as text, Markdown and JSON."""
