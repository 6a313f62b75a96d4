"""Texts of spec files: new, imported, retired and formatted ones. Imports the model and `steps.specs`."""
