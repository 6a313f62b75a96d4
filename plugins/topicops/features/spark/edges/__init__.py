"""PySpark: the session, the comparison and the facts of a run's tables. Needs its extra."""

from topicops.edges.extras import require_extra

require_extra("spark")
