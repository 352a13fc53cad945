# SPDX-License-Identifier: BSD-3-Clause
"""One input: mean and bands of a function that gets faster and faster."""

from pathlib import Path

import matplotlib.pyplot as plt

from lsgp import LSGPRegressor
from lsgp.datasets import make_doppler
from lsgp.plotting import plot_fit

X, y = make_doppler(400, noise=0.1, random_state=0)
model = LSGPRegressor(
    kernel="matern52",
    input_transform="standardize",
    n_neighbors=30,
    scale="local",
    n_models=1,
    n_tuning_points=400,
    random_state=0,
).fit(X, y)

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot_fit(model, level=0.9, ax=ax)
ax.set(xlabel="x", ylabel="Doppler function", xlim=(0, 1), ylim=(-1, 1))
figure.savefig(Path(__file__).with_name("images") / "fit_1d.png", dpi=100)
