"""Events of runs for people: one for each thing that happened, began or is over, once to each receiver."""
