"""Fakes and builders that ship with the package, held to the real systems by shared scenarios.

Imports ``model`` and ``controller`` only.
"""
