# SPDX-License-Identifier: BSD-3-Clause
"""Maps: a large grid from the command line, and the gaps of a satellite's map.

``grid`` fits 50,000 points of a synthetic field and predicts 4,500 × 4,100 cells to a GeoTIFF with
``lsgp map``: time on the clock and of processors, and peak memory of that process. ``satellite``
makes a NetCDF file of the data of Heaton et al. (2019), of which clouds hide a third, fills it with
``lsgp fill`` and compares with the cells that were hidden; it draws the picture of the gallery and
writes the scores that its page includes. Raw numbers are appended to benchmarks/results/maps.jsonl.

    python benchmarks/maps.py grid                        # some minutes on 2 cores
    python benchmarks/maps.py grid --share 20             # one row in twenty
    python benchmarks/maps.py satellite --data-folder data
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from comparison_tables import markdown_table
from numpy.typing import NDArray
from predict_stream import run
from runner import FOLDER, ResultsFile, describe_machine
from scores import coverage_of, rmse_of

from lsgp import LSGPRegressor, PredictiveDistribution
from lsgp.maps import set_crs

RESULTS = FOLDER / "maps.jsonl"
GALLERY = Path(__file__).parents[1] / "docs" / "gallery"

N_POINTS, N_COLUMNS, N_ROWS, SPACING = 50_000, 4500, 4100, 20.0
#: One model of few neighbors. Of the field, 48 have an RMSE of .019 and 96 of .015, for 8 and 16
#: seconds of processors for each 459,000 cells.
SETTINGS: dict[str, Any] = {"effort__n_models": 1, "n_neighbors": 96, "effort__n_points": 1000}


def field(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Hills of several sizes, in kilometers."""
    return np.sin(x / 9) * np.cos(y / 7) + 0.4 * np.sin(x / 2 + y / 3) + 0.2 * np.cos(y)


def measure_grid(share: int, folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    width, height = N_COLUMNS * SPACING, N_ROWS * SPACING
    x, y = rng.uniform(0, width, N_POINTS), rng.uniform(0, height, N_POINTS)
    rows = pd.DataFrame({"x": x, "y": y})
    truth = field(rows["x"] / 1000, rows["y"] / 1000)
    noisy = pd.Series(truth + 0.05 * rng.standard_normal(N_POINTS), name="z")
    model = LSGPRegressor().set_params(**SETTINGS, n_jobs=-1, random_state=0).fit(rows, noisy)
    set_crs(model, "EPSG:32632").save(folder / "model.lsgp")
    n_rows = N_ROWS // share
    bounds = (0.0, height - n_rows * SPACING, width, height)
    where = ("--bounds", *bounds, "--spacing", SPACING)
    measured = run(
        folder, "map", folder / "model.lsgp", *where, "-o", folder / "map.tif", "--quiet"
    )
    import rioxarray

    with rioxarray.open_rasterio(folder / "map.tif") as found:
        mean = found[0, ::16, ::16]
        x, y = np.meshgrid(mean["x"] / 1000, mean["y"] / 1000)
        error = float(np.sqrt(np.mean((mean.values - field(x, y)) ** 2)))
    n_cells = n_rows * N_COLUMNS
    fitted = model.fitted_[0]
    return {
        "what": "grid",
        "n_points": N_POINTS,
        "n_cells": n_cells,
        "kernel": str(fitted.model.kernel),
        "n_neighbors": fitted.n_neighbors,
        "rmse_of_field": error,
        "file_mb": (folder / "map.tif").stat().st_size / 1e6,
        "cells_per_second": n_cells / measured["seconds"],
        "seconds_for_all": measured["seconds"] * N_ROWS * N_COLUMNS / n_cells,
        **measured,
    }


def satellite(data: Path) -> tuple[xr.DataArray, NDArray[Any]]:
    """The map with its gaps, and the map without them."""
    with np.load(data / "satellite.npz") as file:
        lon, lat = file["grid_lonlat"].T
        columns, rows = np.unique(lon), np.unique(lat)[::-1]
        masked, true = np.full((2, len(rows), len(columns)), np.nan, dtype=np.float32)
        at = (np.searchsorted(-rows, -lat), np.searchsorted(columns, lon))
        masked[at], true[at] = file["grid_mask"], file["grid_true"]
    north = {"units": "degrees_north", "standard_name": "latitude"}
    east = {"units": "degrees_east", "standard_name": "longitude"}
    axes = {
        "lat": ("lat", rows.astype(float), north),
        "lon": ("lon", columns.astype(float), east),
    }
    attrs = {"units": "degC", "long_name": "land surface temperature"}
    return xr.DataArray(masked, axes, ("lat", "lon"), name="lst", attrs=attrs), true


def measure_satellite(data: Path, folder: Path) -> dict[str, Any]:
    cloudy, true = satellite(data)
    cloudy.to_netcdf(folder / "satellite.nc", engine="h5netcdf")
    cloudy_path, filled_path = folder / "satellite.nc", folder / "filled.nc"
    measured = run(folder, "fill", cloudy_path, "--variable", "lst", "-o", filled_path)
    with xr.open_dataset(folder / "filled.nc") as opened:
        filled = opened.load()
    hidden = np.isnan(cloudy.values) & np.isfinite(true)
    mean, std = (filled[name].values[hidden].astype(float) for name in ("lst", "lst_std"))
    predicted = PredictiveDistribution(mean, std)  # in gaps it is Gaussian
    draw(cloudy, filled, GALLERY / "images" / "satellite.png")
    return {
        "what": "satellite",
        "n_observed": int(np.isfinite(cloudy.values).sum()),
        "n_hidden": int(hidden.sum()),
        "rmse": rmse_of(predicted, true[hidden]),
        "crps": float(predicted.crps(true[hidden]).mean()),
        "coverage_95": coverage_of(predicted, true[hidden], 0.95),
        **measured,
    }


def draw(cloudy: xr.DataArray, filled: xr.Dataset, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
    low, high = np.nanquantile(cloudy, [0.002, 0.998])
    std = filled["lst_std"].where(cloudy.isnull())
    for ax, values, title, colors, ends in (
        (axes[0], cloudy, "observed", "viridis", (low, high)),
        (axes[1], filled["lst"], "filled", "viridis", (low, high)),
        (axes[2], std, "standard deviation of what was filled in", "cividis", (None, None)),
    ):
        look = {"cmap": colors, "vmin": ends[0], "vmax": ends[1], "rasterized": True}
        image = ax.pcolormesh(values["lon"], values["lat"], values, shading="nearest", **look)
        ax.set_aspect(1 / np.cos(np.radians(float(values["lat"].mean()))))
        ax.set_title(title, fontsize=10, loc="left")
        figure.colorbar(image, ax=ax, shrink=0.85, label="°C")
    figure.savefig(path, dpi=72)


def write_scores(found: dict[str, Any], path: Path) -> None:
    """The table that the page of the gallery includes."""
    cells = {
        "cells observed": f"{found['n_observed']:,}",
        "cells hidden": f"{found['n_hidden']:,}",
        "RMSE": f"{found['rmse']:.3f} °C",
        "CRPS": f"{found['crps']:.3f} °C",
        "95 % intervals cover": f"{100 * found['coverage_95']:.1f} %",
        "processor time": f"{found['processor_seconds']:.0f} s",
        "memory": f"{found['peak_memory_mb']:,.0f} MB",
    }
    table = markdown_table(list(cells), [list(cells.values())], n_texts=None)
    path.write_text(table + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("grid", "satellite"))
    parser.add_argument("--share", type=int, default=1, help="of the grid: one row in so many")
    data = os.environ.get("LSGP_DATA")
    parser.add_argument("--data-folder", type=Path, default=data, help="with satellite.npz")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.what == "grid":
            found = measure_grid(options.share, Path(folder))
        else:
            if options.data_folder is None:
                parser.error("--data-folder: where satellite.npz is")
            found = measure_satellite(options.data_folder, Path(folder))
    found["machine"] = describe_machine()
    if options.what == "satellite":
        write_scores(found, GALLERY / "satellite_scores.txt")
    ResultsFile(options.output).add(found)
    print(json.dumps({key: value for key, value in found.items() if key != "machine"}, indent=2))


if __name__ == "__main__":
    main()
