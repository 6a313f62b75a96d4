"""Pull requests on GitHub and GitLab: validated, planned, reviewed, and applied after the merge, with their comments.

``edges`` asks the forge and git; ``forge`` and ``values`` are what the other modules share.
"""
