# SPDX-License-Identifier: BSD-3-Clause
"""A map with a hole: the same data, tuned without and with the places to predict."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import LSGPRegressor

rng = np.random.default_rng(1)


def height(X):
    hills = np.sin(5 * X[:, 0]) * np.cos(4 * X[:, 1])
    ripples = np.sin(45 * X[:, 0] + 20 * X[:, 1]) * np.sin(40 * X[:, 1])
    return hills + 0.2 * ripples


points = rng.uniform(size=(2500, 2))
in_hole = np.hypot(points[:, 0] - 0.55, points[:, 1] - 0.5) < 0.2
X = points[~in_hole]
y = height(X) + 0.05 * rng.standard_normal(len(X))
X_hole = points[in_hole]

settings = {"effort": "fast", "random_state": 0}
models = {
    "tuned as usual": LSGPRegressor().set_params(**settings).fit(X, y),
    "tuned for the hole": LSGPRegressor().set_params(**settings).fit(X, y, queries=X_hole),
}

side = (np.arange(60) + 0.5) / 60
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
truth = height(grid)
figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), sharex=True, sharey=True, layout="constrained")
for row, (name, model) in zip(axes, models.items(), strict=True):
    mean, std = model.predict(grid, return_std=True, kind="latent")
    wrong = np.sqrt(np.mean((model.predict(X_hole) - height(X_hole)) ** 2))
    row[0].set_ylabel(name)
    pictures = (
        (mean, "mean", "viridis", (-1.3, 1.3)),
        (np.abs(mean - truth), f"error (in the hole: {wrong:.2f})", "magma", (0, 0.6)),
        (std, "standard deviation", "magma", (0, 0.6)),
    )
    for ax, (values, title, colors, (low, high)) in zip(row, pictures, strict=True):
        image = ax.imshow(
            values.reshape(60, 60),
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap=colors,
            interpolation="nearest",
            vmin=low,
            vmax=high,
        )
        ax.add_patch(plt.Circle((0.55, 0.5), 0.2, fill=False, color="white", linestyle="--"))
        ax.set_title(title, fontsize=10)
        ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        figure.colorbar(image, ax=ax, shrink=0.85)
figure.savefig(Path(__file__).with_name("images") / "map_with_gap.png", dpi=72)
