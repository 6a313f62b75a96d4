"""``topicops ci``: what the jobs of a pull request run. One module a command; the outside world is in ``flow``."""
