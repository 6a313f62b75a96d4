"""What a run changes: the delta, the changes, the plan, and the format of `plan.json`."""
