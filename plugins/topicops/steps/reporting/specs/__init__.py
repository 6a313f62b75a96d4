"""Spec files: diagnostics, explained values, codes, imported topics."""
