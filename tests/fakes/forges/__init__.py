"""What the fake forge keeps, and its two languages: the REST paths of GitHub and those of GitLab."""
