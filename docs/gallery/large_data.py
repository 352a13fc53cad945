# SPDX-License-Identifier: BSD-3-Clause
"""A hundred thousand points: fitted and drawn as a map, with the time it took."""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, Hyperparameters, LSGPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(100_000, 2))


def truth(X):
    u, v = X.T
    return np.sin(8 * np.hypot(u, v)) / (1 + u**2 + v**2) + 0.3 * np.sin(20 * u * v)


y = truth(X) + 0.1 * rng.standard_normal(len(X))

start = time.perf_counter()
model = LSGPRegressor(
    kernel="matern52",
    input_transform="standardize",
    n_neighbors=50,
    hyperparameters=Hyperparameters(scale="global"),
    effort=Effort(n_models=1, n_points=300),
    n_jobs=-1,
    random_state=0,
).fit(X, y)
fitted = time.perf_counter()
side = np.linspace(-2, 2, 180)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
mean = model.predict(grid)
predicted = time.perf_counter()

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4), sharey=True, layout="constrained")
axes[0].scatter(*X[:3000].T, c=y[:3000], s=4, linewidth=0, vmin=-1, vmax=1)
axes[0].set_title(f"{len(X):,} noisy points (3,000 drawn)", fontsize=10)
axes[1].imshow(mean.reshape(180, 180), origin="lower", extent=(-2, 2, -2, 2), vmin=-1, vmax=1)
error = np.sqrt(np.mean((mean - truth(grid)) ** 2))
axes[1].set_title(
    f"{len(grid):,} predictions, error {error:.3f}\n"
    f"fit {fitted - start:.1f} s, predict {predicted - fitted:.1f} s on this machine",
    fontsize=10,
)
for ax in axes:
    ax.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
figure.savefig(Path(__file__).with_name("images") / "large_data.png", dpi=62)
