# SPDX-License-Identifier: BSD-3-Clause
"""Classes: where each is likeliest, whether the probabilities hold, and what is mistaken."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lsgp import Effort, LSGPClassifier
from lsgp.plotting import plot_confusion, plot_decision, plot_reliability

NAMES = np.array(["core", "ring", "outside"])


def draw_rows(n, seed):
    """Rings with blurred edges: no line divides them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    radius = np.hypot(X[:, 0], X[:, 1]) + 0.12 * rng.normal(size=n)
    return X, NAMES[np.digitize(radius, [0.4, 0.8])]


X, y = draw_rows(400, seed=0)
model = LSGPClassifier(effort=Effort(n_models=1), random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 3, figsize=(14.5, 4.2), layout="constrained")
plot_decision(model, ax=axes[0])
plot_reliability(model, *draw_rows(4000, seed=1), ax=axes[1])
plot_confusion(model, *draw_rows(4000, seed=2), ax=axes[2])
figure.savefig(Path(__file__).with_name("images") / "classes.png", dpi=110)
