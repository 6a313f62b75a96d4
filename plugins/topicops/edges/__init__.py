"""The world: one outside system a module, each filling a port of ``model.ports``.

Imports ``model`` only; client errors are translated here and nowhere else.
"""
