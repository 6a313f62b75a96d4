"""A plan for people: ``wording`` says what both forms say, ``text`` is for a terminal, ``markdown`` for a pull request.

Every word that a spec or a cluster wrote is made printable. Imports the model alone.
"""
