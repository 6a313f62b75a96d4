"""The verbs: one module a step, pure functions over the model's values.

Imports ``model`` and ``controller`` only; knows no outside system.
"""
