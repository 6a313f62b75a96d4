"""One run: its folder, its access to the outside world, its outcomes, and what it leaves for later runs."""
