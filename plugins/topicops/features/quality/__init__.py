"""Quality rules over every row of a run, before and after its changes. ``edges``: Great Expectations on Spark."""
