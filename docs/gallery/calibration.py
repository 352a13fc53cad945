# SPDX-License-Identifier: BSD-3-Clause
"""Do the intervals cover what they say? A check on data the model has not seen."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_calibration

# Like many real tables: some inputs skewed, one irrelevant, and noise that grows with the
# response.
rng = np.random.default_rng(0)
n = 3000
load = rng.lognormal(size=n)
speed = rng.uniform(1, 10, size=n)
age = rng.exponential(3, size=n)
batch = rng.normal(size=n)
X = np.column_stack([load, speed, age, batch])
response = 2 * np.log1p(load) * np.sqrt(speed) + np.sin(speed) - 0.3 * age
y = response + (0.1 + 0.05 * np.abs(response)) * rng.standard_normal(n)
X_train, y_train, X_test, y_test = X[:1500], y[:1500], X[1500:], y[1500:]

model = LSGPRegressor(
    kernel="matern32",
    input_transform="yeo-johnson",
    n_neighbors=64,
    hyperparameters=Hyperparameters(scale="local"),
    effort=Effort(n_points=400, n_models=2),
    random_state=0,
).fit(X_train, y_train)

plot_calibration(model, X_test, y_test)
plt.gcf().savefig(Path(__file__).with_name("images") / "calibration.png", dpi=100)
