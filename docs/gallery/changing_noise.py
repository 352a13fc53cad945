# SPDX-License-Identifier: BSD-3-Clause
"""Noise that changes from place to place, with a global and with a local scale."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_fit

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, size=(1000, 1)), axis=0)
noise = 0.05 + 0.5 * (X[:, 0] / 10) ** 2
y = np.sin(X[:, 0]) + noise * rng.standard_normal(len(X))

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, scale in zip(axes, ("global", "local"), strict=True):
    model = LSGPRegressor(
        kernel="matern32",
        input_transform="standardize",
        hyperparameters=Hyperparameters(scale=scale),
        effort=Effort(n_models=1, n_points=200),
        n_neighbors=100,
        random_state=0,
    ).fit(X, y)
    plot_fit(model, ax=ax)
    log_score = model.loo().calibration.nll
    ax.set(title=f'scale="{scale}": negative log density {log_score:.2f}', xlabel="x", ylabel="y")
axes[1].get_legend().remove()
figure.savefig(Path(__file__).with_name("images") / "changing_noise.png", dpi=90)
