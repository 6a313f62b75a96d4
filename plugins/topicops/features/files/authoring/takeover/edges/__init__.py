"""The files of other tools."""
