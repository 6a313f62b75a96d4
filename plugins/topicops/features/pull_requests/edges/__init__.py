"""GitHub and GitLab by their REST APIs, what the variables of a CI job say, and merges in git's store."""
