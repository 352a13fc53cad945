# SPDX-License-Identifier: BSD-3-Clause
"""The methods of the paper's Table 2, and our default, on one split of one data set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from lsgp import Hyperparameters, Localizer, LSGPRegressor
from reproduction.datasets import Dataset, split
from reproduction.protocol import Protocol
from reproduction.search import choose_lsgpr, make_folds, nested, smallest_training_set

Array = NDArray[np.float64]

#: "We used a standardization procedure for the Protein dataset".
STANDARDIZED = ("protein",)


class Task(NamedTuple):
    """One split, with inputs scaled as the paper does, on the training rows."""

    X: Array  # (n, d)
    y: Array  # (n,)
    X_test: Array  # (t, d)
    raw_X: Array  # (n, d) for methods that bring their own scaling
    raw_X_test: Array  # (t, d)
    seed: int
    n_jobs: int | None


class Outcome(NamedTuple):
    """Predictions at the test rows, and what was chosen to make them."""

    mean: Array  # (t,)
    chosen: dict[str, Any]


Method = Callable[[Task, Protocol], Outcome]


def make_task(name: str, data: Dataset, seed: int, n_jobs: int | None) -> tuple[Task, Array]:
    """The task of a split, and the targets of its test rows, which methods do not see."""
    train, test = split(len(data.y), seed)
    scaler = StandardScaler() if name in STANDARDIZED else MinMaxScaler()
    raw_X, raw_X_test = data.X[train], data.X[test]
    X = scaler.fit_transform(raw_X)
    task = Task(X, data.y[train], scaler.transform(raw_X_test), raw_X, raw_X_test, seed, n_jobs)
    return task, data.y[test]


def measure(task: Task, y_test: Array, predict: Method, protocol: Protocol) -> dict[str, Any]:
    """The test MSE of a method, with its time and choices, as a line of the results has them."""
    started, cpu_started = time.perf_counter(), time.process_time()
    outcome = predict(task, protocol)
    return {
        "mse": float(np.mean((outcome.mean - y_test) ** 2)),
        "seconds": round(time.perf_counter() - started, 3),
        "cpu_seconds": round(time.process_time() - cpu_started, 3),
        "n_train": len(task.y),
        "n_test": len(y_test),
        "chosen": outcome.chosen,
    }


def predict_lsgpr(task: Task, protocol: Protocol, localizer: str) -> Outcome:
    """LSGPR as in the paper: noise, lengthscale and m by 3-fold cross-validation.

    The localizer carries the paper's factor 1/h. All local models share the kernel parameters.
    """
    model = LSGPRegressor(
        kernel="rbf",
        localizer=Localizer(localizer, normalized=True),
        trend="none",
        # Means depend on the ratio of noise and signal alone.
        hyperparameters=Hyperparameters(signal_variance=1.0, scale="global"),
        objective=None,
        n_jobs=task.n_jobs,
    )
    # A diagonal of the unit cube grows with the root of its dimension, as typical distances do.
    unit = np.sqrt(task.X.shape[1])
    choice = choose_lsgpr(
        model,
        task.X,
        task.y,
        make_folds(len(task.y), task.seed, protocol.n_validation),
        protocol.noise_variances,
        [float(value * unit) for value in protocol.lengthscales],
        protocol.n_neighbors,
    )
    model.set_params(**nested(choice.settings)).fit(task.X, task.y)
    return Outcome(model.predict(task.X_test), {**choice.settings, "at_end": choice.at_end})


def predict_gp(task: Task, protocol: Protocol) -> Outcome:
    """Exact GP with an RBF kernel, by the marginal likelihood.

    The hyperparameters of few rows are where those of more rows start from: restarts are cheap
    there, and the later likelihood is maximized once.
    """
    rows = np.random.default_rng(task.seed).permutation(len(task.y))
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(1.0, (1e-2, 1e2)) + WhiteKernel(
        0.1, (1e-7, 1e1)
    )
    n_restarts = protocol.gp_restarts
    with warnings.catch_warnings():
        # A hyperparameter at its bound: the fit is the best within them.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for n_tuning in sorted({min(n, len(rows)) for n in protocol.n_gp_tuning}):
            few = rows[:n_tuning]
            tuned = GaussianProcessRegressor(
                kernel,
                normalize_y=True,
                n_restarts_optimizer=n_restarts,
                random_state=task.seed,
            ).fit(task.X[few], task.y[few])
            kernel, n_restarts = tuned.kernel_, 0
    used = rows[: protocol.n_gp_rows]
    if len(used) > n_tuning:
        tuned = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
        tuned.fit(task.X[used], task.y[used])
    chosen = {"kernel": str(kernel), "n_tuning": n_tuning, "n_rows": len(used)}
    return Outcome(tuned.predict(task.X_test), chosen)


def predict_knn(task: Task, protocol: Protocol) -> Outcome:
    """K nearest neighbors, k by the same cross-validation."""
    most = smallest_training_set(len(task.y))
    search = GridSearchCV(
        KNeighborsRegressor(n_jobs=task.n_jobs),
        {"n_neighbors": [k for k in protocol.knn_neighbors if k <= most]},
        scoring="neg_mean_squared_error",
        cv=make_folds(len(task.y), task.seed, len(task.y)),
    ).fit(task.X, task.y)
    return Outcome(search.predict(task.X_test), search.best_params_)


def predict_default(task: Task, protocol: Protocol) -> Outcome:
    """Our estimator on the inputs as they are, with no setting."""
    model = LSGPRegressor(random_state=task.seed, n_jobs=task.n_jobs)
    model.fit(task.raw_X, task.y)
    assert model.tuning_ is not None
    if not model.tuning_.is_complete:
        # Ctrl-C ends tuning with the best so far, which is no result of the protocol.
        raise KeyboardInterrupt
    chosen = [candidate.describe() for candidate, _ in model.tuning_.chosen]
    return Outcome(model.predict(task.raw_X_test), {"models": chosen})


METHODS: dict[str, Method] = {
    "lsgpr-hilbert": lambda task, protocol: predict_lsgpr(task, protocol, "hilbert"),
    "lsgpr-epanechnikov": lambda task, protocol: predict_lsgpr(task, protocol, "epanechnikov"),
    "gp": predict_gp,
    "knn": predict_knn,
    "default": predict_default,
}
