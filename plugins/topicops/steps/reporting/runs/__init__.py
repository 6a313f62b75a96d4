"""What a run did and how it ended: reports, quality results, audit lines, exit statuses."""
