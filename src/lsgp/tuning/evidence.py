# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of all rows, tuned by the evidence: what few rows are best served by.

Leave-one-out scores of few rows are too noisy to tune many hyperparameters by, and more so to
choose among many models. The marginal likelihood makes more of the rows where a GP is about
right, and its maxima under a prior are weights for models: Bayesian model averaging.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, get_lapack_funcs
from scipy.spatial.distance import cdist

from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.tuning.parameters import Parameters

Array = NDArray[np.float64]

#: Up to this many rows, exact GPs have a share in what tuning combines in any case,
FEW_ROWS = 500
#: which is a half at this many rows. By the leave-one-out scores alone it would be too small.
N_EVEN = 100
#: Hyperparameters that an exact GP has no use for, or that stay as they are.
NOT_TUNED = frozenset({"constant_variance", "localizer_decay", "scale_dof"})
#: Variance of the constant, relative to that of the signal. The slope is centered at the mean of
#: the rows here and at the query in a local model: with a flat constant it makes no difference.
FLAT = 50.0
#: Standard deviations of the normal priors: of log lengthscales about their mean, of that mean
#: about the typical distance of standardized inputs, of the log noise about its default.
LENGTHSCALE_SPREAD = 1.5
MEAN_LENGTHSCALE_SPREAD = 1.0
NOISE_SPREAD = 2.0
USUAL_NOISE = 0.1
#: Steps for every model, and more of them for the likeliest, which are averaged.
FIRST_ITERATIONS = 20
LAST_ITERATIONS = 30
N_AVERAGED = 4
#: Less likely ones, relative to the likeliest, are not worth their time.
SMALLEST_ODDS = 0.02
#: Value of a covariance that cannot be factored: bad, but finite for the optimizer.
BAD_VALUE = 1e10


class ExactGP(NamedTuple):
    """A local model whose neighborhood is all rows, and how likely it makes them."""

    model: LocalModel
    log_evidence: float  # with the prior's density at the maximum


def exact_share(n: int) -> float:
    """The weight that exact GPs have in a combination, whatever their leave-one-out scores."""
    return 1.0 / (1.0 + (n / N_EVEN) ** 2)


def make_exact(model: LocalModel, given: frozenset[str] = frozenset()) -> LocalModel:
    """The model without localizing, which is an exact GP if all rows are neighbors."""
    constant = model.constant_variance
    if constant > 0 and "constant_variance" not in given:
        constant = FLAT
    return model.replace(
        localizer="rectangular", localizer_decay=1.0, scale_dof=np.inf, constant_variance=constant
    )


def average_exact_gps(
    problems: Sequence[LocalProblem], parameters: Parameters, check_time: Callable[[], None]
) -> list[tuple[int, ExactGP, float]]:
    """Tune an exact GP for each problem; the likeliest few, with their number and odds."""
    found = [maximize_evidence(p, parameters, FIRST_ITERATIONS, check_time) for p in problems]
    order = np.argsort([-gp.log_evidence for gp in found], kind="stable")[:N_AVERAGED]
    kept = []
    for k in map(int, order):
        problem = problems[k]._replace(model=found[k].model)
        kept.append(maximize_evidence(problem, parameters, LAST_ITERATIONS, check_time))
    log_evidence = np.array([gp.log_evidence for gp in kept])
    weights = np.exp(log_evidence - log_evidence.max())
    return [
        (int(k), gp, float(weight))
        for k, gp, weight in zip(order, kept, weights, strict=True)
        if weight > SMALLEST_ODDS
    ]


def maximize_evidence(
    problem: LocalProblem,
    parameters: Parameters,
    n_iterations: int,
    check_time: Callable[[], None] = lambda: None,
) -> ExactGP:
    """Tune an exact GP from the problem's model on, by the marginal likelihood and the prior."""
    model = problem.model

    def function(vector: Array) -> tuple[float, Array]:
        check_time()
        changed = parameters.unpack(vector, model)
        value, gradient = negative_log_evidence(problem._replace(model=changed))
        if not math.isfinite(value) or not np.isfinite(gradient).all():
            return BAD_VALUE, np.zeros(len(vector))
        prior, prior_gradient = negative_log_prior(changed)
        return value + prior, parameters.restrict(gradient + prior_gradient, model)

    best, value = parameters.descend(function, model, n_iterations)
    return ExactGP(best, -value)


def negative_log_evidence(problem: LocalProblem) -> tuple[float, Array]:
    """Negative log marginal likelihood of all rows, mean over the targets, and its gradient.

    The gradient is in log hyperparameters, in the order of `Scores`. The trend is centered at
    the mean of the rows. Sums over pairs of rows of M_ij (z_i - z_j)² need no array of the
    differences: for a symmetric M they are 2 (sum_i M_i. z_i² - z'Mz).
    """
    X, y, noise, model = problem
    n, n_targets = y.shape
    s2 = model.signal_variance
    z = (X - X.mean(axis=0)) / model.lengthscale
    rho, by_r2 = KERNELS[model.kernel](cdist(z, z, "sqeuclidean"))
    A = rho + model.constant_variance + model.slope_variance * (z @ z.T)
    A[np.diag_indices(n)] += model.noise_variance * noise
    try:
        factor = cholesky(A, lower=True, check_finite=False)
    except LinAlgError:
        return math.inf, np.zeros(X.shape[1] + len(SHARED_PARAMETERS))
    alpha = cho_solve((factor, True), y, check_finite=False)
    misfit = float((y * alpha).sum()) / n_targets
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    value = 0.5 * (misfit / s2 + log_determinant + n * math.log(2.0 * math.pi * s2))

    (invert,) = get_lapack_funcs(("potri",), (factor,))
    inverse = np.tril(invert(factor, lower=True)[0])
    inverse += np.tril(inverse, -1).T
    adjoint = 0.5 * (inverse - alpha @ alpha.T / (s2 * n_targets))
    pairs = adjoint * by_r2
    by_trend = np.einsum("ij,ij->j", z, adjoint @ z)
    by_lengthscale = -4.0 * (pairs.sum(axis=1) @ (z * z) - np.einsum("ij,ij->j", z, pairs @ z))
    by_lengthscale -= 2.0 * model.slope_variance * by_trend
    shared = [
        0.5 * (n - misfit / s2),
        model.noise_variance * float(np.diag(adjoint) @ noise),
        model.constant_variance * float(adjoint.sum()),
        model.slope_variance * float(by_trend.sum()),
        0.0,
        0.0,
    ]
    return value, np.concatenate([by_lengthscale, shared])


def negative_log_prior(model: LocalModel) -> tuple[float, Array]:
    """Of lengthscales and noise, but for a constant, and its gradient."""
    logarithms = np.log(model.lengthscale)
    d = len(logarithms)
    mean = float(logarithms.mean())
    deviation = (logarithms - mean) / LENGTHSCALE_SPREAD
    shift = (mean - 0.5 * math.log(d)) / MEAN_LENGTHSCALE_SPREAD
    noise = (math.log(model.noise_variance) - math.log(USUAL_NOISE)) / NOISE_SPREAD
    value = 0.5 * (float(deviation @ deviation) + shift**2 + noise**2)
    gradient = np.zeros(d + len(SHARED_PARAMETERS))
    gradient[:d] = deviation / LENGTHSCALE_SPREAD + shift / (MEAN_LENGTHSCALE_SPREAD * d)
    gradient[d + 1] = noise / NOISE_SPREAD
    return value, gradient
