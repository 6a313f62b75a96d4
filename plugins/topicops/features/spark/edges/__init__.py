"""PySpark: the session, the comparison and the facts of a run's tables. Needs its extra."""

import warnings

from topicops.edges.extras import require_extra

require_extra("spark")
# PySpark 4.0 to 4.2 say so as they are imported; the tests of these releases ran with pandas 3.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
