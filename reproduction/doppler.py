# SPDX-License-Identifier: BSD-3-Clause
"""Figure 3 of the paper: a GP and an LSGP on the Doppler function, tuned as the paper says.

`lsgp.cli.demo` shows the same data with models tuned as users have them; here the lengthscale
(and what the paper leaves open, noise and signal variance) is by L-BFGS on the marginal
likelihood, and the bandwidth by the squared error on a validation set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.cli.demo import FAST_PART, LEVEL, Comparison, Doppler, Fit, draw_data, fit_gp, plot
from lsgp.compute.blas import one_blas_thread
from reproduction.figures import FORMATS, is_drawn
from reproduction.protocol import Protocol
from reproduction.results import Result, Results


def fit_lsgp(data: Doppler, expected_neighbors: Sequence[int]) -> tuple[Fit, float]:
    """The LSGP at the bandwidth of the least validation error, and that bandwidth."""
    start = time.perf_counter()
    base = LSGPRegressor(
        kernel="rbf",
        localizer="epanechnikov",
        trend="none",
        hyperparameters=Hyperparameters(scale="global"),
        objective="marginal_likelihood",
        effort=Effort(n_models=1),
        random_state=0,
    )
    models = [
        clone(base).set_params(localizer__bandwidth=k / (2 * len(data.X))).fit(data.X, data.y)
        for k in expected_neighbors
    ]
    errors = [
        np.mean((model.predict(data.X_validation) - data.y_validation) ** 2) for model in models
    ]
    best = models[int(np.argmin(errors))]
    bandwidth = float(best.get_params()["localizer__bandwidth"])
    mean = best.predict(data.X_test)
    low, high = best.predict_interval(data.X_test, LEVEL)
    seconds = time.perf_counter() - start
    is_neighbor = np.abs(data.X_test - data.X.T) < bandwidth
    n_used = float(is_neighbor.sum(axis=1).mean())
    return Fit(mean, low, high, seconds, n_used), bandwidth


def compare(n: int, draw: int, protocol: Protocol) -> tuple[Comparison, Result]:
    """Both models on one draw, and the line of the results."""
    data = draw_data(n, seed=draw)
    # Matrices this small are slower on several threads.
    with one_blas_thread():
        gp = fit_gp(data)
        lsgp, bandwidth = fit_lsgp(data, protocol.expected_neighbors)
    comparison = Comparison(data, gp, lsgp)
    (gp_mse, lsgp_mse), (gp_fast, lsgp_fast) = comparison.errors(), comparison.errors(FAST_PART)
    return comparison, {
        **_key(n, draw, protocol),
        "gp_mse": gp_mse,
        "lsgp_mse": lsgp_mse,
        "gp_fast_mse": gp_fast,
        "lsgp_fast_mse": lsgp_fast,
        "n_used": lsgp.n_neighbors,
        "bandwidth": bandwidth,
    }


def is_done(folder: Path, results: Results, protocol: Protocol) -> bool:
    """Whether the picture and all of its numbers are there from an earlier run."""
    has_numbers = all(
        _key(n, draw, protocol) in results
        for n in protocol.sizes
        for draw in range(protocol.n_draws)
    )
    return has_numbers and is_drawn(folder, "figure3")


def draw_doppler(
    folder: Path, results: Results, protocol: Protocol, advance: Callable[..., object]
) -> None:
    """Figure 3, and a line of the results for each size and draw of the data."""
    first: dict[int, list[Comparison]] = {}
    for n in protocol.sizes:
        for draw in range(protocol.n_draws):
            key = _key(n, draw, protocol)
            # The first draw is in the picture.
            if draw == 0 or key not in results:
                comparison, result = compare(n, draw, protocol)
                if draw == 0:
                    first[n] = [comparison]
                if key not in results:
                    results.add(result)
            advance(1)
    for suffix in FORMATS:
        plot(first, folder / f"figure3.{suffix}")


def _key(n: int, draw: int, protocol: Protocol) -> Result:
    return {"protocol": protocol.name, "kind": "figure3", "n": n, "draw": draw}
