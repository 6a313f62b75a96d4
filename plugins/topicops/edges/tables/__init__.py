"""A run's data as tables in columns: what `validate` and `snapshot` write once, and all later steps read.

They are for Spark, and its extra brings pyarrow.
"""

from topicops.edges.extras import require_extra

require_extra("spark")
