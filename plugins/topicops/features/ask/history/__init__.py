"""The history of an environment: one line of JSON for each run, with the troubles that it saw begin and end."""
