"""What files and ``cluster.draining`` ask for: which replicas move, what stands against it, and whether it holds.

Imports nothing of the other folders of moves.
"""
