# SPDX-License-Identifier: BSD-3-Clause
"""Two targets in one model: the neighborhoods and one factorization serve both."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_fit

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(0, 48, size=600))
temperature = 15 + 6 * np.sin((hour - 9) * np.pi / 12) + 0.5 * rng.standard_normal(600)
humidity = 70 - 20 * np.sin((hour - 7) * np.pi / 12) + 3 * rng.standard_normal(600)
X = pd.DataFrame({"hour": hour})
Y = pd.DataFrame({"temperature [°C]": temperature, "humidity [%]": humidity})

model = LSGPRegressor(
    kernel="rbf",
    input_transform="standardize",
    effort=Effort(n_models=1, n_points=200),
    n_neighbors=64,
    hyperparameters=Hyperparameters(scale="local"),
    random_state=0,
).fit(X, Y)

figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
for ax, name in zip(axes, Y.columns, strict=True):
    plot_fit(model, target=name, ax=ax)
    ax.get_legend().remove()
axes[0].set_xlabel("")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
figure.savefig(Path(__file__).with_name("images") / "several_targets.png", dpi=90)
