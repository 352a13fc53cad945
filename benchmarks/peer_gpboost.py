# SPDX-License-Identifier: BSD-3-Clause
"""GPBoost: a Gaussian process by Vecchia's approximation."""

from __future__ import annotations

import gpboost
import numpy as np
from peers import Array, Predict, Task, standardized

from lsgp.method.distribution import PredictiveDistribution

#: Up to here both smoothnesses are tried.
MOST_ROWS_OF_CHOICE = 2000


@standardized
def fit_gpboost(task: Task) -> Predict:
    """Vecchia with 30 neighbors, ARD Matérn by marginal likelihood, with an intercept.

    Smoothness 3/2; up to 2,000 rows 3/2 or 5/2, whichever has the higher likelihood.
    """
    models = []
    for smoothness in (1.5, 2.5) if len(task.y) <= MOST_ROWS_OF_CHOICE else (1.5,):
        model = gpboost.GPModel(
            gp_coords=task.X,
            cov_function="matern_ard" if task.X.shape[1] > 1 else "matern",
            cov_fct_shape=smoothness,
            likelihood="gaussian",
            gp_approx="vecchia",
            num_neighbors=30,
            num_parallel_threads=1,
            seed=task.seed,
        )
        model.fit(y=task.y, X=np.ones((len(task.y), 1)))
        models.append(model)
    best = min(models, key=lambda one: one.get_current_neg_log_likelihood())

    def predict(X: Array) -> PredictiveDistribution:
        found = best.predict(gp_coords_pred=X, X_pred=np.ones((len(X), 1)), predict_var=True)
        return PredictiveDistribution(found["mu"], np.sqrt(found["var"]))

    return predict
