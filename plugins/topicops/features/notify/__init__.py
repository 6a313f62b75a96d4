"""Tell people of runs: one event for each thing that happened, began or is over, once to each receiver."""
