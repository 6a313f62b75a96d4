"""``schema``: JSON Schemas of the files that people write, and of what topicops writes for programs."""
