"""``local`` and ``demo``, which the distribution ``topicops-local`` brings, and the cluster of ``init --local``.

Importing this raises ``MissingExtraError`` where it is not installed.
"""

from __future__ import annotations

from topicops.edges.extras import require_extra

require_extra("local")

from topicops_local.demo import demo_command  # noqa: E402
from topicops_local.local import app, local_addresses  # noqa: E402

__all__ = ["app", "demo_command", "local_addresses"]
