# SPDX-License-Identifier: BSD-3-Clause
"""`make cluster-demo`, in small: it raises if predictions differ from one machine."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
cluster_demo = pytest.importorskip("cluster_demo")


@pytest.mark.usefixtures("quick_workers")
def test_the_demonstration_predicts_as_one_machine_throughout(tmp_path, monkeypatch):
    monkeypatch.setitem(cluster_demo.SETTINGS, "effort__n_points", 30)
    monkeypatch.setitem(cluster_demo.SETTINGS, "n_neighbors", 8)
    said = []
    cluster_demo.run(tmp_path, 11_000, 400, said.append)
    told = "\n".join(said)
    assert told.count(": as one machine, mean and std") == 4
    assert "DistributedModel(LSGPRegressor of 11,000 rows, 2 inputs, 1 model; 6 partitions" in told
    assert "saved: 7 files" in told
