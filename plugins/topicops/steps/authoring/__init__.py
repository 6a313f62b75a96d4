"""Spec files as text, and which lines belong to which field. Imports the model."""
