# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that the tests of several files share."""

import multiprocessing

import polars as pl
import pytest
from cli_runs import QUICK, make_frame, run_ok
from storage_cases import fit_case


@pytest.fixture
def model_path(tmp_path):
    return tmp_path / "model.lsgp"


@pytest.fixture
def saved_model(model_path):
    """The path of a saved model, that of the case "given"."""
    fit_case("given").save(model_path)
    return model_path


@pytest.fixture(scope="session")
def quick_workers():
    """Processes of Dask come from one that has imported what they need: 1.6 s each, not 4.8."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "lsgp.distributed"])
        yield


@pytest.fixture(scope="module")
def cli_files(tmp_path_factory):
    """A folder with data.csv, data.parquet, missing.csv and model.lsgp (of y, from x and z)."""
    folder = tmp_path_factory.mktemp("cli")
    frame = make_frame(300)
    frame.write_csv(folder / "data.csv")
    frame.write_parquet(folder / "data.parquet")
    row = pl.int_range(frame.height)
    frame.with_columns(
        x=pl.when(row % 50 == 7).then(None).otherwise("x"),
        y=pl.when(row % 100 == 9).then(None).otherwise("y"),
    ).write_csv(folder / "missing.csv", null_value="NA")
    run_ok("fit", folder / "data.csv", "--target", "y", "--features", "x,z", *QUICK,
           "-o", folder / "model.lsgp")  # fmt: skip
    return folder
