# SPDX-License-Identifier: BSD-3-Clause
"""The method as it is, without anything around it: what scikit-learn's models are compared with."""

import warnings

BARE = {
    "objective": None,
    "input_transform": None,
    "prior_mean": 0.0,
    "trend": "none",
    "hyperparameters__scale": "global",
}
#: The same of a kernel by its name, with a signal variance of 1.
UNIT = {**BARE, "hyperparameters__signal_variance": 1.0}
SLOW_KERNEL = "runs on the reference backend, which is much slower"


def fit_silently(model, X, y, **options):
    """Fit a model whose kernel object is known to need the reference backend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f".*{SLOW_KERNEL}")
        return model.fit(X, y, **options)
