"""GitHub and GitLab by their REST APIs, one class each behind the port ``model.pull_requests.forge.Forge``."""
