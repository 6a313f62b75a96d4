"""What people and programs read, as text, Markdown and JSON: one module for each thing, by subject.

Imports the model, and the steps whose values it shows.
"""
