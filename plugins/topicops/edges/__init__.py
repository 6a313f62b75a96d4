"""The world: one outside system a module, each filling a port of ``model.ports``.

Imports ``model`` only; client errors are translated here and nowhere else.
"""

import os

# pyarrow's own allocator keeps what each thread has used once: 60 MiB more in a plan of 50 environments. It is chosen
# when pyarrow is imported.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
