"""From desired and live topics to a gated plan: diff, placement, risk, blocking, gate. Imports the model only."""
