"""Every command of the pages, typed into a shell: each works, and does what its page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.live import look, remove_topics
from fixtures.page_reader import Reader
from fixtures.page_stories import STORIES
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.soak


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder whose own cluster is gone after the test, and so are the shared cluster's topics."""
    yield tmp_path
    if cluster := LocalCluster.find(tmp_path / "at/.topicops"):
        cluster.down(now=True)


@pytest.mark.parametrize("page", STORIES)
def test_each_line_of_the_page_works_where_the_page_says_that_it_does(
    page: str, folder: Path, local_cluster: LocalCluster
) -> None:
    remove_topics(local_cluster, look(local_cluster).topics)
    reader = Reader(page, folder, local_cluster)
    STORIES[page](reader)
    assert reader.left == []
