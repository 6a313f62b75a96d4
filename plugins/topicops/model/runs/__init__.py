"""What a run did and saw: outcomes, checks, quality results, and the lines of the audit log."""
