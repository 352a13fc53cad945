# SPDX-License-Identifier: BSD-3-Clause
"""A stream: the model takes in new points, and forgets old ones, without tuning again."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_fit

rng = np.random.default_rng(0)


def measure(start, stop, n=150):
    t = np.sort(rng.uniform(start, stop, size=(n, 1)), axis=0)
    return t, np.sin(t[:, 0]) + 0.05 * t[:, 0] + 0.1 * rng.standard_normal(n)


model = LSGPRegressor(
    kernel="rbf",
    input_transform="standardize",
    effort=Effort(n_models=1, n_points=150),
    n_neighbors=40,
    hyperparameters=Hyperparameters(scale="global"),
    random_state=0,
).fit(*measure(0, 10))

figure, axes = plt.subplots(3, 1, figsize=(8, 6.6), sharex=True, layout="constrained")
window = np.array([[0.0], [20.0]])
plot_fit(model, X=window, ax=axes[0])
axes[0].set_title("tuned on the first 10 seconds", fontsize=10)

model.partial_fit(*measure(10, 15))
plot_fit(model, X=window, ax=axes[1])
axes[1].set_title("5 seconds later: partial_fit", fontsize=10)

model.partial_fit(*measure(15, 20)).forget(np.arange(150))
plot_fit(model, X=window, ax=axes[2])
axes[2].set_title("5 seconds later: the first 10 forgotten", fontsize=10)
for ax in axes:
    ax.set(xlabel="", ylabel="signal", ylim=(-2.5, 3.5))
    ax.get_legend().remove()
axes[2].set_xlabel("time [s]")
figure.savefig(Path(__file__).with_name("images") / "live_updates.png", dpi=90)
