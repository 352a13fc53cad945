# SPDX-License-Identifier: BSD-3-Clause
"""`make cluster-demo`, in small: it raises if predictions differ from one machine."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
cluster = pytest.importorskip("cluster")


@pytest.mark.usefixtures("quick_workers")
def test_the_demonstration_predicts_as_one_machine_throughout(tmp_path):
    said = []
    cluster.demo(tmp_path, 11_000, 400, said.append)
    told = "\n".join(said)
    assert told.count(": as one machine, mean and std") == 4
    assert "DistributedModel(LSGPRegressor of 11,000 rows, 2 inputs, 1 model; 6 partitions" in told
    assert "saved: 7 files" in told
