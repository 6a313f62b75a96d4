"""What a pull request changes, who has approved it, and what its comments say. Nothing here asks a forge."""
