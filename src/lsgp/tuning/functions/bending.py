# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of functions without noise, whose inputs may be bent, both by the evidence.

A function often varies faster at one end of an input than at the other, as those of 1 / x do.
Powers of the inputs (Yeo and Johnson's) straighten them, and the marginal likelihood says which:
its gradient in the inputs of the rows, times theirs in the powers. The noise is as small as factors
allow, in units of the targets: relative to a signal that may be a thousand times as large, it would
be most of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense import Dense
from lsgp.inputs.transforms import InputTransform
from lsgp.inputs.transforms.yeo_johnson import differentiate_by_power, log_slope, yeo_johnson
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.tuning.clock import Clock
from lsgp.tuning.descent import descend_vector
from lsgp.tuning.evidence import evidence_of
from lsgp.tuning.functions.lattice import Lattice
from lsgp.tuning.functions.plan import (
    BEND_ENDS,
    BEND_SPREAD,
    FAILED_EVIDENCE,
    LARGEST_BEND,
    LARGEST_NOISELESS_SIGNAL,
    MOST_DESCENTS,
    MOST_POWER,
    ROUNDING_NOISE,
    TINY_NOISE,
    WORTH_DESCENT,
)
from lsgp.tuning.parameters import LENGTHSCALE_BOUNDS, SHARED_BOUNDS, Parameters
from lsgp.tuning.plan import BAD_EVIDENCE, NEGLIGIBLE_EVIDENCE
from lsgp.tuning.priors import negative_log_prior

Array = NDArray[np.float64]

#: Of the shared hyperparameters.
NOISE_ENTRY = SHARED_PARAMETERS.index("noise_variance")


class Bent(NamedTuple):
    """An exact GP without noise, how its inputs are bent, and how likely it makes the rows."""

    model: LocalModel
    bends: Array  # (d,)
    log_evidence: float  # with the priors' density at the maximum


@dataclass(frozen=True, eq=False)
class BendableRows:
    """Rows in a transform, whose inputs are bent by ``bends`` (d,) if it only standardizes.

    A bend is the logarithm of how many times as steep the transform is where an input is large as
    where it is small, at two of its quantiles: 0 leaves it as it is.
    """

    inputs: Array  # (n, d) as they are given
    X: Array  # (n, d) transformed
    y: Array  # (n, t)
    noise: Array  # (n,)
    transform: InputTransform
    span: Array  # (d,) of the logarithm of the slope, for each 1 of the power; infinite: not bent
    shortest: Array | None = None  # (d,) that lengthscales are no shorter than, on a lattice

    @classmethod
    def of(
        cls,
        inputs: Array,
        X: Array,
        y: Array,
        noise: Array,
        transform: InputTransform,
        lattice: Lattice | None = None,
    ) -> BendableRows:
        low, high = log_slope(np.quantile(inputs, BEND_ENDS, axis=0))
        span = high - low
        # Far from 0 slopes hardly differ, and the powers of a bend would overflow.
        largest = np.abs(log_slope(inputs)).max(axis=0)
        is_bent = (LARGEST_BEND * largest <= MOST_POWER * span) & (span > 0)
        shortest = None
        if lattice is not None:
            is_bent &= lattice.is_bendable
            shortest = lattice.shortest(X)
        span = np.where(is_bent, span, np.inf)
        return cls(inputs, X, y, noise, transform, span, shortest)

    def part(self, rows: NDArray[np.integer]) -> BendableRows:
        inputs, X, y, noise = (a[rows] for a in (self.inputs, self.X, self.y, self.noise))
        return replace(self, inputs=inputs, X=X, y=y, noise=noise)

    def powers(self, bends: Array) -> Array:
        return np.asarray(1.0 + bends / self.span)

    def bent(self, bends: Array) -> tuple[Array, Array]:
        """The rows (n, d) in the bent transform, and their derivatives in the bends (n, d)."""
        X, by_bends = np.empty_like(self.X), np.empty_like(self.X)
        center, scale = self.transform.center, self.transform.scale
        for j, power in enumerate(self.powers(bends).tolist()):
            column = np.append(self.inputs[:, j], center[j])
            steepness = float(log_slope(center[j]))
            unit = scale[j] * math.exp((power - 1.0) * steepness)
            value, slope = yeo_johnson(column, power), differentiate_by_power(column, power)
            X[:, j] = (value[:-1] - value[-1]) / unit
            by_power = (slope[:-1] - slope[-1]) / unit - steepness * X[:, j]
            by_bends[:, j] = by_power / self.span[j]
        return X, by_bends


def noiseless(parameters: Parameters, shortest: Array | None = None) -> Parameters:
    """With next to no noise, in units of the targets, and a signal as large as it may get.

    ``shortest`` (d,) are lengthscales that are no shorter, or 0 each.
    """
    tiny = math.log(TINY_NOISE)
    own = {
        "noise_variance": np.array([[tiny, tiny]]),
        "signal_variance": np.array(
            [[SHARED_BOUNDS["signal_variance"][0], LARGEST_NOISELESS_SIGNAL]]
        ),
    }
    if shortest is not None:
        low, high = LENGTHSCALE_BOUNDS
        of = np.array(parameters.groups or range(len(shortest))) * (not parameters.is_isotropic)
        each = np.array([shortest[of == k].min() for k in range(of.max() + 1)])
        each = np.log(np.maximum(each, math.exp(low)))
        own["lengthscale"] = np.column_stack([each, np.full(len(each), high)])
    return replace(parameters, own_bounds=own)


def maximize_bent_evidence(
    rows: BendableRows,
    start: Bent,
    parameters: Parameters,
    n_iterations: int,
    clock: Clock,
    dense: Dense,
    bends_inputs: bool,
    least_gain: float = NEGLIGIBLE_EVIDENCE,
) -> Bent:
    """Tune from ``start`` on, by the marginal likelihood and the priors.

    Until a step gains less than ``least_gain``; without a step if there are no iterations. What is
    found has the noise that it was evaluated with.
    """
    model, n_own = start.model, len(parameters.pack(start.model))
    lowest, failures = [BAD_EVIDENCE], [0]
    # With less, rounding decides whether there is a factor, and descents end at the first without.
    least_noise = ROUNDING_NOISE * len(rows.X)

    def rounded(vector: Array) -> tuple[LocalModel, bool]:
        changed = parameters.unpack(vector[:n_own], model)
        if changed.noise_variance >= least_noise:
            return changed, False
        return changed.replace(noise_variance=least_noise), True

    def function(vector: Array) -> tuple[float, Array]:
        clock.check()
        (changed, is_rounded), bends = rounded(vector), vector[n_own:]
        X, by_bends = rows.bent(bends) if bends_inputs else (rows.X, np.empty((0, 0)))
        found = evidence_of(LocalProblem(X, rows.y, rows.noise, changed), dense)
        if not math.isfinite(found.value) or not np.isfinite(found.gradient).all():
            # Not much worse than the best: from a step to a value that is beyond all others, the
            # line search comes back to where it was, and takes that for the end.
            failures[0] += 1
            return lowest[0] + FAILED_EVIDENCE, np.zeros(len(vector))
        prior, by_prior = negative_log_prior(changed, parameters.groups, has_noise=False)
        value, gradient = found.value + prior, found.gradient + by_prior
        if is_rounded:
            gradient[NOISE_ENTRY - len(SHARED_PARAMETERS)] = 0.0  # the signal does not change it
        gradient = parameters.restrict(gradient, changed)
        if bends_inputs:
            value += 0.5 * float(bends @ bends) / BEND_SPREAD**2
            by_bend = np.einsum("ij,ij->j", found.by_rows, by_bends) + bends / BEND_SPREAD**2
            gradient = np.concatenate([gradient, by_bend])
        lowest[0] = min(lowest[0], value)
        return value, gradient

    vector = np.concatenate([parameters.pack(model), start.bends if bends_inputs else []])
    if not len(vector):
        return start._replace(model=rounded(vector)[0], log_evidence=-function(vector)[0])
    bounds = parameters.bounds(model)
    bounds += [(-LARGEST_BEND, LARGEST_BEND)] * (len(vector) - n_own)
    if not n_iterations:
        # Its noise may be that of other rows, which rounding left more of, or less.
        vector = np.clip(vector, *np.transpose(bounds))
        return start._replace(model=rounded(vector)[0], log_evidence=-function(vector)[0])
    best, value = vector, math.inf
    for _ in range(MOST_DESCENTS):
        before, failures[0] = value, 0
        best, value = descend_vector(
            function, best, bounds, n_iterations, lambda _: least_gain, is_steep=True
        )
        if not failures[0] or before - value < WORTH_DESCENT:
            break
    bends = best[n_own:] if bends_inputs else start.bends
    return Bent(rounded(best)[0], bends, -value)
