"""What shall change: the delta, the changes, the plan, and the form of `plan.json`."""
