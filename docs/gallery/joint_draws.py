# SPDX-License-Identifier: BSD-3-Clause
"""Draws of a map, and what they answer: an area above a threshold, and a total."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, LSGPRegressor

rng = np.random.default_rng(3)


def lead(X):
    spill = np.exp(-(((X[:, 0] - 0.35) / 0.22) ** 2) - ((X[:, 1] - 0.6) / 0.18) ** 2)
    return 20 + 45 * spill + 12 * np.sin(9 * X[:, 0]) * np.cos(11 * X[:, 1])


X = rng.uniform(size=(60, 2))
y = lead(X) + 3 * rng.standard_normal(len(X))
model = LSGPRegressor(
    kernel="matern32", effort=Effort(n_models=1, n_points=60), n_neighbors=40, random_state=0
).fit(X, y)

n, threshold = 50, 40.0
side = (np.arange(n) + 0.5) / n
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
mean = model.predict(grid)
draws = model.sample_y(grid, n_samples=300, random_state=0, kind="latent")
area = (draws > threshold).mean(axis=0)  # of each draw, as a share of the map
total = draws.mean(axis=0)
# The same total without draws; it knows nothing of thresholds.
average, average_std = model.predict_average([grid], return_std=True)

figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained")
maps = [("mean", mean), ("one draw", draws[:, 0]), ("another", draws[:, 1])]
for ax, (title, values) in zip(axes[0], maps, strict=True):
    image = ax.imshow(
        values.reshape(n, n), origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=70, cmap="viridis"
    )
    ax.contour(side, side, values.reshape(n, n), [threshold], colors="white", linewidths=0.8)
    ax.plot(*X.T, ".", color="black", markersize=2)
    ax.set(title=title, xticks=[], yticks=[])
figure.colorbar(image, ax=axes[0], label="lead, mg/kg")

probability = (draws > threshold).mean(axis=1)
image = axes[1, 0].imshow(
    probability.reshape(n, n), origin="lower", extent=(0, 1, 0, 1), cmap="magma", vmin=0, vmax=1
)
axes[1, 0].set(title=f"probability above {threshold:g}", xticks=[], yticks=[])
figure.colorbar(image, ax=axes[1, 0])
axes[1, 1].hist(100 * area, bins=24, color="tab:blue")
axes[1, 1].axvline(
    100 * (mean > threshold).mean(), color="black", linestyle="--", label="of the mean"
)
axes[1, 1].set(title=f"area above {threshold:g}", xlabel="% of the map", yticks=[])
axes[1, 1].legend(frameon=False)
axes[1, 2].hist(total, bins=24, color="tab:blue", density=True)
values = np.linspace(total.min(), total.max(), 200)
density = np.exp(-0.5 * ((values - average) / average_std) ** 2) / average_std / np.sqrt(2 * np.pi)
axes[1, 2].plot(values, density, color="black", label="predict_average")
axes[1, 2].set(title="average over the map", xlabel="mg/kg", yticks=[])
axes[1, 2].legend(frameon=False)
print(f"probability that the area exceeds 12 % of the map: {(area > 0.12).mean():.2f}")
print(f"average {average[0]:.2f} ± {average_std[0]:.2f}, of draws ± {total.std():.2f}")
figure.savefig(Path(__file__).with_name("images") / "joint_draws.png", dpi=72)
