"""Texts of spec files: new, imported and retired ones. Imports the model and `steps.specs`."""
