# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs matter: relevance of ten inputs, of which five do."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1

from lsgp import LSGPRegressor
from lsgp.plotting import plot_relevance

# y = 10 sin(pi a b) + 20 (c - 0.5)² + 10 d + 5 e + noise, and five inputs that do nothing.
X, y = make_friedman1(2000, n_features=10, noise=1.0, random_state=0)
X = pd.DataFrame(X, columns=[*"abcde", *(f"nothing {i}" for i in range(1, 6))])
model = LSGPRegressor(
    kernel="rbf",
    input_transform="standardize",
    n_models=1,
    n_neighbors=64,
    n_tuning_points=500,
    scale="global",
    random_state=0,
).fit(X, y)

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
plot_relevance(model, ax=ax)
figure.savefig(Path(__file__).with_name("images") / "relevance.png", dpi=100)
print(np.round(model.relevance_, 3))
