"""Great Expectations on Spark. Needs its extra."""

from topicops.edges.extras import require_extra

require_extra("quality")
