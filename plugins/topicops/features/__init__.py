"""Features beside the loop: each is one folder, which can be deleted."""
