"""From YAML nodes to desired topics: typed fields, layers of defaults, rules. Imports the model only."""
