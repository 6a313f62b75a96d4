"""What every test has: the plugins of ``fixtures``, a folder for leases, few examples of each property."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = [
    "fixtures.tiers",
    "fixtures.zookeeper",
    "fixtures.secured_zookeeper",
    "fixtures.ensemble",
    "fixtures.cluster",
    "fixtures.release_table",
    "fixtures.guarded_broker",
    "fixtures.spark",
    "fixtures.workspace",
    "fixtures.simulated",
    "fixtures.stores",
    "fixtures.soak_sample",
    "fixtures.summaries",
    "fixtures.wheel",
    "fixtures.workers",
]

settings.register_profile("short", max_examples=50, deadline=None)
settings.load_profile("short")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Yield a folder of this session for the leases that count for the whole account."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
