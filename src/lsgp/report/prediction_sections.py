# SPDX-License-Identifier: BSD-3-Clause
"""The predictions of models of one or two inputs, as a picture in the report."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.view import DataRows, as_table, columns_of, input_names, possible
from lsgp.regressor import LSGPRegressor
from lsgp.report import charts
from lsgp.report.axes import limits

Array = NDArray[np.float64]

#: Points of the curve, pixels along each side of a map, and data points in either.
N_GRID, RESOLUTION, N_DATA = 300, 110, 500

#: Viridis and cividis at even steps: even in lightness, and alike for the color-blind.
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
CIVIDIS = ("00224e", "1a386f", "434e6c", "61656f", "7d7c78", "9b9476", "bcad6c", "dec958", "fee838")


def predictions_section(model: LSGPRegressor, names: Sequence[str], sample: DataRows) -> str:
    """Curves or maps of every target; empty for models of more than two inputs."""
    d = model.n_features_in_
    if d > 2 or model.ensemble_.encoder is not None:
        return ""
    part = slice(None, None, max(1, -(-len(sample.rows) // N_DATA)))
    X, y = sample.X[part], sample.y[part]
    shown = f"{len(X):,} of {sample.n_total:,} training rows" if len(X) < sample.n_total else "data"
    draw = _curves if d == 1 else _maps
    return (
        '<section id="predictions"><h2>Predictions</h2>'
        f'<div class="charts">{draw(model, names, X, y, shown)}</div></section>'
    )


def _curves(model: LSGPRegressor, names: Sequence[str], X: Array, y: Array, shown: str) -> str:
    low, high = limits(X[:, 0], 0.02)
    grid = np.linspace(low, high, N_GRID)
    queries = as_table(model.ensemble_, grid[:, None])
    mean = columns_of(model.predict(queries))
    bands = [
        [columns_of(end) for end in model.predict_interval(queries, 0.9, kind)]
        for kind in ("observation", "latent")
    ]
    caption = (
        f"Mean, and 90 % intervals of an observation (light) and of the latent function (dark). "
        f"Points: {shown}."
    )
    return "".join(
        _figure(
            charts.fit_chart(
                grid,
                mean[:, k],
                [(band[0][:, k], band[1][:, k]) for band in bands],
                (X[:, 0], y[:, k]),
                input_names(model.ensemble_)[0],
                name,
            ),
            caption,
        )
        for k, name in enumerate(names)
    )


def _maps(model: LSGPRegressor, names: Sequence[str], X: Array, y: Array, shown: str) -> str:
    sides = [possible(model.ensemble_, j, *limits(X[:, j], 0.02)) for j in (0, 1)]
    # Centers of the pixels; the first row of a picture is its top.
    steps = (np.arange(RESOLUTION) + 0.5) / RESOLUTION
    across, up = (low + (high - low) * steps for low, high in sides)
    queries = np.stack(np.meshgrid(across, up[::-1]), axis=-1).reshape(-1, 2)
    mean, std = model.predict(as_table(model.ensemble_, queries), return_std=True)
    inputs = input_names(model.ensemble_)
    figures = []
    for k, name in enumerate(names):
        for values, colors, what in (
            (mean, VIRIDIS, "Mean"),
            (std, CIVIDIS, "Standard deviation of an observation"),
        ):
            image = columns_of(values)[:, k].reshape(RESOLUTION, RESOLUTION)
            low, high = np.quantile(image[np.isfinite(image)], [0.005, 0.995])
            picture = charts.map_chart(
                png_data(colorize(image, float(low), float(high), colors)),
                png_data(colorize(np.linspace(1, 0, 64)[:, None], 0.0, 1.0, colors)),
                sides,
                (float(low), float(high)),
                X,
                inputs,
                f"{what} of {name}",
            )
            figures.append(_figure(picture, f"{what} of {name}. Points: {shown}."))
    return "".join(figures)


def _figure(chart: str, caption: str) -> str:
    return f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>"


def colorize(image: Array, low: float, high: float, colors: Sequence[str]) -> NDArray[np.uint8]:
    """Pixels (rows, columns, 3) of values between low and high; beyond them the end colors."""
    table = np.array([[int(c[k : k + 2], 16) for k in (0, 2, 4)] for c in colors], dtype=float)
    spread = high - low if high > low else 1.0
    share = np.clip(np.nan_to_num((image - low) / spread), 0.0, 1.0)
    at = np.linspace(0.0, 1.0, len(colors))
    return np.stack([np.interp(share, at, table[:, c]) for c in range(3)], axis=-1).astype(np.uint8)


def png_data(pixels: NDArray[np.uint8]) -> str:
    """A picture of shape (rows, columns, 3) as the data address of a PNG file."""
    n_rows, n_columns = pixels.shape[:2]
    # Every row begins with the number of its filter: 0, none.
    raw = b"".join(b"\0" + pixels[row].tobytes() for row in range(n_rows))

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    png += chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
