"""Fakes of the outside systems and builders of values, held to the real systems by shared scenarios.

Imports ``model`` alone of the package.
"""
