# SPDX-License-Identifier: BSD-3-Clause
"""Clusters of threads, which several files share."""

import pytest
from distributed import Client

from lsgp.distributed import fitting


@pytest.fixture(scope="module")
def client():
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as own:
        yield own


@pytest.fixture
def in_parts(monkeypatch):
    """Rows stay in partitions, however few there are."""
    monkeypatch.setattr(fitting, "MOST_GATHERED", 0)
