# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs matter, and how: ten inputs, of which five do."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import make_friedman1

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.plotting import plot_effects, plot_importance

# y = 10 sin(pi a b) + 20 (c - 0.5)² + 10 d + 5 e + noise, and five inputs that do nothing.
X, y = make_friedman1(2000, n_features=10, noise=1.0, random_state=0)
X = pd.DataFrame(X, columns=[*"abcde", *(f"nothing {i}" for i in range(1, 6))])
model = LSGPRegressor(
    kernel="rbf",
    input_transform="standardize",
    effort=Effort(n_models=1, n_points=500),
    n_neighbors=64,
    hyperparameters=Hyperparameters(scale="global"),
    random_state=0,
).fit(X, y)

figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
plot_importance(model, ax=left.subplots())
plot_effects(model, ["d", "b", "a", "e", "c", "nothing 1"], ax=right.subplots(2, 3).ravel())
figure.savefig(Path(__file__).with_name("images") / "importance.png", dpi=100)

found = model.importance()
for j in found.order:
    print(f"{found.names[j]:9}  {found.values[j]:6.3f} ± {found.standard_errors[j]:.3f}")
assert set(found.order[:5]) == set(range(5))
