"""What stands beside the loop: each feature is one folder, which can be deleted."""
