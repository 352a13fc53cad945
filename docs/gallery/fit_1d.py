# SPDX-License-Identifier: BSD-3-Clause
"""One input: mean and bands of a function that gets faster and faster."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_fit

random = np.random.default_rng(0)
x = np.sort(random.uniform(size=400))
y = np.sqrt(x * (1 - x)) * np.sin(2.1 * np.pi / (x + 0.05)) + 0.1 * random.standard_normal(400)
X = x[:, None]
model = LSGPRegressor(
    kernel="matern52",
    input_transform="standardize",
    n_neighbors=30,
    hyperparameters=Hyperparameters(scale="local"),
    effort=Effort(n_models=1, n_points=400),
    random_state=0,
).fit(X, y)

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot_fit(model, level=0.9, ax=ax)
ax.set(xlabel="x", ylabel="Doppler function", xlim=(0, 1), ylim=(-1, 1))
figure.savefig(Path(__file__).with_name("images") / "fit_1d.png", dpi=100)
