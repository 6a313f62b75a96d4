"""Spec files: diagnostics, imported topics."""
