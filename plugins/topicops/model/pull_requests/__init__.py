"""Pull requests as values: what a forge knows of them, what a comment showed, and what a review approved."""
