"""Spec files: commands that write, form and explain them."""
