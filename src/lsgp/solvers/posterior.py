# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of few rows, averaged over the posterior of their hyperparameters.

Few rows have about the same evidence under many hyperparameters, and a single choice predicts too
surely. Log hyperparameters have normal priors here; kernel and input transform have prior weights.
Particles start at quasi-random points of the prior and move to the posterior by tempering
(sequential Monte Carlo). Between resamplings they move on elliptical slices (Murray, Adams and
MacKay 2010), which need neither gradients nor step sizes; the ellipses adapt to the covariance of
the particles. The signal variance is integrated analytically: [E6] with all weights 1, so that
every member is a Student-t. The result is a short list of exact GPs of equal weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from lsgp.compute.clock import Clock
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import Groups, KernelSetting, kernel_of
from lsgp.method.parameters import LENGTHSCALE_BOUNDS, SHARED_BOUNDS, scale_together
from lsgp.solvers.evidence import BAD_EVIDENCE, FLAT

Array = NDArray[np.float64]
Kinds = NDArray[np.intp]

#: The covariance of the ellipses is that of the particles times INFLATION, so that particles can
#: spread, plus SHRINKAGE times the prior's, so that no axis vanishes.
INFLATION, SHRINKAGE = 1.2, 0.05
#: A particle stays in place after so many shrinkings of its slice.
MOST_SHRINKINGS = 12
#: Least effective share of the particles after a tempering step.
EFFECTIVE = 0.5
#: Slices after each tempering step, and after the last.
N_MOVES, N_LAST_MOVES = 2, 4
#: Number of exact GPs that represent the posterior.
N_MEMBERS = 16
#: Degrees of freedom of the prior of the signal variance, whose center is the variance of the
#: targets about their mean.
SCALE_DOF = 1.0
#: With this many rows, the prior weight of other input transforms is half that of standardizing.
N_TRANSFORM = 20
#: Median of the geometric mean lengthscale, in standard deviations of inputs times the root of
#: their number, its spread, and the spread of each lengthscale about it (all of logarithms).
LENGTHSCALE, MEAN_LENGTHSCALE_SPREAD, LENGTHSCALE_SPREAD = math.exp(0.3), 1.0, 1.0
#: Medians and spreads of the variances of noise and slope, relative to the signal variance.
NOISE, SLOPE = (0.01, 3.0), (0.5, 2.0)
#: Added to the diagonal, relative to the sum of the prior variances of the rows.
JITTER = 1e-12
#: Corner of a bordered matrix, so large that the factor's last pivots stay positive.
CORNER = 1e200


class Choices(NamedTuple):
    """The kernels and input transforms that particles choose from, and given hyperparameters."""

    model: LocalModel  # has the given hyperparameters; 0 switches one off
    given: frozenset[str]
    is_isotropic: bool
    kernels: tuple[KernelSetting, ...]
    inputs: Sequence[Array]  # (n, d) rows in each transform
    groups: Groups | None = None  # of inputs that share a lengthscale

    @property
    def kind_weights(self) -> Array:
        """Prior weights of all pairs of transform and kernel; the kernel's number runs fastest."""
        n = len(self.inputs[0])
        # The first transform standardizes; with few rows, the others have lower weights.
        weights = np.full(len(self.inputs), n * n / (n * n + N_TRANSFORM**2))
        weights[0] = 1.0
        return np.repeat(weights, len(self.kernels))


class Member(NamedTuple):
    """An exact GP, with the number of its input transform."""

    transform: int
    model: LocalModel


class Posterior:
    """The posterior of the hyperparameters of exact GPs.

    Particles ``u`` (k, n_dimensions) are standardized log hyperparameters, standard normal a
    priori; ``kind`` (k,) numbers the pair of transform and kernel.
    """

    def __init__(self, choices: Choices, y: Array, noise: Array, clock: Clock) -> None:
        self.choices, self.y, self.noise, self.clock = choices, y, noise, clock
        self.n, self.d = choices.inputs[0].shape
        model = choices.model
        is_flat = model.constant_variance > 0 and "constant_variance" not in choices.given
        self.constant = FLAT if is_flat else model.constant_variance
        self.knows_scale = "signal_variance" in choices.given
        self.signal = model.signal_variance if self.knows_scale else float(y.var(axis=0).mean())
        self.groups = tuple(range(self.d)) if choices.groups is None else choices.groups
        self.n_groups = max(self.groups) + 1
        # The mean log lengthscale, deviations from it, noise and slope.
        self.n_dimensions = self.n_groups + 3
        # (d,) of each transform: the prior is in units of the inputs' standard deviations.
        self.units = [self._units(x.std(axis=0)) for x in choices.inputs]
        centered = [
            ((x - x.mean(axis=0)) / unit).T
            for x, unit in zip(choices.inputs, self.units, strict=True)
        ]
        self.squares = [
            ((x[:, :, None] - x[:, None, :]) ** 2).reshape(self.d, -1) for x in centered
        ]
        self.products = [(x[:, :, None] * x[:, None, :]).reshape(self.d, -1) for x in centered]

    def _units(self, deviations: Array) -> Array:
        """Standard deviations (d,); groups share one, and constant inputs have 1."""
        groups = np.array(self.groups)
        is_shared = np.bincount(groups)[groups] > 1
        largest = float(deviations.max())
        if self.choices.is_isotropic and not is_shared.all() and largest > 0:
            # With one lengthscale, inputs keep their ratios: their unit is the root mean square.
            return np.full(self.d, largest * math.sqrt(np.mean((deviations / largest) ** 2)))
        units = scale_together(np.where(deviations > 0, deviations, np.inf), is_shared)
        return np.where(np.isinf(units), 1.0, units)

    def lengthscales(self, u: Array, kind: Kinds) -> Array:
        """Lengthscales (k, d) in units of the standard deviations."""
        d = self.d
        if "lengthscale" in self.choices.given:
            units = np.stack(self.units)[kind // len(self.choices.kernels)]
            return np.asarray(self.choices.model.lengthscale / units)
        center = math.log(LENGTHSCALE * math.sqrt(d))
        logarithm = center + MEAN_LENGTHSCALE_SPREAD * u[:, :1]
        if d > 1 and not self.choices.is_isotropic:
            deviations = u[:, 1 : self.n_groups + 1][:, list(self.groups)]
            logarithm = logarithm + LENGTHSCALE_SPREAD * deviations
        scales = np.exp(np.clip(logarithm, *LENGTHSCALE_BOUNDS))
        return np.ascontiguousarray(np.broadcast_to(scales, (len(u), d)))

    def noises(self, u: Array) -> Array:
        """Noise variances (k,)."""
        return self._variances(u[:, self.n_groups + 1], "noise_variance", *NOISE)

    def slopes(self, u: Array) -> Array:
        """Slope variances (k,)."""
        return self._variances(u[:, self.n_groups + 2], "slope_variance", *SLOPE)

    def _variances(self, u: Array, name: str, median: float, spread: float) -> Array:
        given = getattr(self.choices.model, name)
        if name in self.choices.given or given == 0:
            return np.full(len(u), given)
        return np.exp(np.clip(math.log(median) + spread * u, *SHARED_BOUNDS[name]))

    def covariances(self, u: Array, kind: Kinds) -> Array:
        """Covariances (k, n, n) of the rows without noise, relative to the signal variance."""
        n, kernels = self.n, self.choices.kernels
        lengthscale, slope = self.lengthscales(u, kind), self.slopes(u)
        covariances = np.empty((len(u), n, n))
        for number in np.unique(kind).tolist():
            of = np.flatnonzero(kind == number)
            x, name = divmod(number, len(kernels))
            formula = kernel_of(kernels[name]).formula
            assert formula is not None, "the evidence is one of correlations of the distance"
            weight = lengthscale[of] ** -2.0
            K = formula(weight @ self.squares[x])[0]
            K += (slope[of, None] * weight) @ self.products[x] + self.constant
            covariances[of] = K.reshape(-1, n, n)
        return covariances

    def log_evidence(self, u: Array, kind: Kinds) -> Array:
        """Log evidence (k,), mean over the targets."""
        self.clock.check()
        n, t = self.n, self.y.shape[1]
        A = np.zeros((len(u), n + t, n + t))
        A[:, :n, :n] = self.covariances(u, kind)
        rows, targets = np.arange(n), np.arange(n, n + t)
        jitter = JITTER * n * (1.0 + self.constant)
        A[:, rows, rows] += self.noises(u)[:, None] * self.noise + jitter
        # Bordered by the targets: the last rows of the factor are then L⁻¹y.
        A[:, n:, :n] = self.y.T
        A[:, targets, targets] = CORNER
        factor = _factor(A)
        with np.errstate(invalid="ignore"):
            log_determinant = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)[:, :n]).sum(axis=1)
            misfit = (factor[:, n:, :n] ** 2).sum(axis=2)  # (k, t) yᵀα
            if self.knows_scale:
                density = -0.5 * misfit.mean(axis=1) / self.signal
            else:  # the signal variance is integrated out
                total = np.log(SCALE_DOF * self.signal + misfit)
                density = -0.5 * (SCALE_DOF + n) * total.mean(axis=1)
            value = -0.5 * log_determinant + density
        return np.where(np.isfinite(value), value, -BAD_EVIDENCE)

    def member(self, u: Array, kind: int) -> Member:
        """Return the exact GP of one particle."""
        one, kinds = u[None], np.array([kind])
        x, name = divmod(kind, len(self.choices.kernels))
        lengthscale = self.choices.model.lengthscale
        if "lengthscale" not in self.choices.given:
            lengthscale = np.ascontiguousarray(self.lengthscales(one, kinds)[0] * self.units[x])
        model = self.choices.model.replace(
            kernel=self.choices.kernels[name],
            localizer="rectangular",
            localizer_decay=1.0,
            lengthscale=lengthscale,
            signal_variance=self.signal,
            noise_variance=float(self.noises(one)[0]),
            constant_variance=self.constant,
            slope_variance=float(self.slopes(one)[0]),
            scale_dof=math.inf if self.knows_scale else SCALE_DOF,
        )
        return Member(x, model)


def integrate(
    choices: Choices, y: Array, noise: Array, rng: np.random.Generator, clock: Clock
) -> list[Member]:
    """Sample exact GPs of equal weight from the posterior of the hyperparameters.

    ``y`` (n, t) are targets in scaled units, ``noise`` (n,) the multipliers of the noise.
    """
    posterior, n = Posterior(choices, y, noise, clock), len(y)
    n_particles = 128 if n <= 64 else 64 if n <= 112 else 32  # powers of 2, for Sobol points
    u, kind = sample_posterior(posterior, choices.kind_weights, n_particles, rng)
    # Midpoints of equal parts of the sorted particles: few members that represent all of them.
    order = np.lexsort((posterior.noises(u), kind))
    middles = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    chosen = order[(middles * len(order)).astype(int)]
    return [posterior.member(u[i], int(kind[i])) for i in chosen]


def draw_prior(
    n_dimensions: int, kind_weights: Array, k: int, rng: np.random.Generator
) -> tuple[Array, Kinds]:
    """Draw k quasi-random points of the prior (k, n_dimensions), and the kind of each."""
    points = qmc.Sobol(n_dimensions + 1, seed=rng).random(k)
    u = ndtri(np.clip(points[:, :-1], 1e-6, 1.0 - 1e-6))
    edges = np.cumsum(kind_weights) / kind_weights.sum()
    return u, np.minimum(np.searchsorted(edges, points[:, -1]), len(edges) - 1)


def sample_posterior(
    posterior: Posterior, kind_weights: Array, k: int, rng: np.random.Generator
) -> tuple[Array, Kinds]:
    """Sample k particles of equal weight from the posterior, and the kind of each."""
    u, kind = draw_prior(posterior.n_dimensions, kind_weights, k, rng)
    value = posterior.log_evidence(u, kind)
    temperature = 0.0
    while temperature < 1.0:
        step = _tempering_step(value, 1.0 - temperature)
        temperature = 1.0 if temperature + step > 1.0 - 1e-9 else temperature + step
        weight = np.exp(step * (value - value.max()))
        edges = np.cumsum(weight / weight.sum())
        kept = np.minimum(np.searchsorted(edges, (np.arange(k) + rng.uniform()) / k), k - 1)
        u, kind, value = u[kept], kind[kept], value[kept]
        for _ in range(N_MOVES if temperature < 1.0 else N_LAST_MOVES):
            u, value = _move(posterior, u, kind, value, temperature, rng)
    return u, kind


def _factor(A: Array) -> Array:
    """Cholesky factors (k, p, p); NaN for matrices that are not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=float)
    except np.linalg.LinAlgError:
        factor = np.full_like(A, np.nan)
        for k, matrix in enumerate(A):
            try:
                factor[k] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
        return factor


def _tempering_step(value: Array, most: float) -> float:
    """Return the largest tempering step that leaves enough particles effective."""

    def is_fine(step: float) -> bool:
        w = np.exp(step * (value - value.max()))
        return bool(w.sum() ** 2 >= EFFECTIVE * len(w) * (w**2).sum())

    if is_fine(most):
        return most
    low, high = 0.0, most
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_fine(middle) else (low, middle)
    return max(low, 1e-3 * most)


def _move(
    posterior: Posterior,
    u: Array,
    kind: Kinds,
    value: Array,
    temperature: float,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Move every particle by one elliptical slice, with ellipses fitted to all particles."""
    k, p = len(u), posterior.n_dimensions
    mean = u.mean(axis=0)
    root = np.linalg.cholesky(INFLATION * np.cov(u.T) + SHRINKAGE * np.eye(p))
    inverse = np.linalg.inv(root)

    def rest(at: Array, log_evidence: Array) -> Array:
        """Log posterior minus the log density of the normal distribution of the ellipses."""
        e = (at - mean) @ inverse.T
        prior = 0.5 * ((e**2).sum(axis=1) - (at**2).sum(axis=1))
        return np.asarray(temperature * log_evidence + prior)

    other = rng.standard_normal(u.shape) @ root.T
    level = rest(u, value) + np.log(rng.uniform(size=k))
    angle = 2.0 * np.pi * rng.random(k)
    low, high = angle - 2.0 * np.pi, angle.copy()
    moved, moved_value = u.copy(), value.copy()
    left = np.arange(k)
    for _ in range(MOST_SHRINKINGS):
        a = angle[left, None]
        proposed = mean + (u[left] - mean) * np.cos(a) + other[left] * np.sin(a)
        proposed_value = posterior.log_evidence(proposed, kind[left])
        is_in = rest(proposed, proposed_value) > level[left]
        moved[left[is_in]], moved_value[left[is_in]] = proposed[is_in], proposed_value[is_in]
        left = left[~is_in]
        if not len(left):
            break
        is_low = angle[left] < 0
        low[left] = np.where(is_low, angle[left], low[left])
        high[left] = np.where(is_low, high[left], angle[left])
        angle[left] = rng.uniform(low[left], high[left])
    return moved, moved_value
