"""Send what may run, and recover what a crashed run left open. The world arrives as ports; imports the model only."""
