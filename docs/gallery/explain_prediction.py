# SPDX-License-Identifier: BSD-3-Clause
"""Why this value? The neighbors of one prediction, their weights and contributions."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lsgp import Effort, LSGPRegressor
from lsgp.plotting import plot_neighborhood

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(1500, 2)), columns=["east [km]", "north [km]"])
u, v = X.to_numpy().T
depth = pd.Series(np.sin(6 * u) + np.cos(9 * v) * u + 0.1 * rng.standard_normal(1500), name="depth")

model = LSGPRegressor(
    kernel="matern52",
    input_transform="standardize",
    effort=Effort(n_models=1, n_points=300),
    n_neighbors=60,
    random_state=0,
).fit(X, depth)

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_neighborhood(model, [0.3, 0.6], ax=ax)
figure.savefig(Path(__file__).with_name("images") / "explain_prediction.png", dpi=100)

explained = model.explain(pd.DataFrame([[0.3, 0.6]], columns=X.columns))
largest = explained.to_frame().sort_values("contribution", key=abs, ascending=False)
print(largest.head(5).to_string(index=False))
