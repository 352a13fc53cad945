# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of an ensemble's predictions in the inputs, block by block.

Each model's are those of its solver, at fixed neighborhoods; from there on they go through the
noise [E7], the combination of models, the input transforms and the units of the targets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import aside_of, check_kind, in_blocks
from lsgp.inputs.encoding.encodings import LeftOut, Number
from lsgp.method.combination import Shape
from lsgp.method.contract import Predictions, QueryGradients
from lsgp.solvers.solver import Block

Array = NDArray[np.float64]


class PredictionGradient(NamedTuple):
    """Predictions in the units of y, and their derivatives in the columns that were given."""

    mean: Array  # (q, t)
    std: Array  # (q, t)
    by_mean: Array  # (q, t, d)
    by_std: Array  # (q, t, d)


def predict_gradient(
    ensemble: Ensemble, X: Array, return_std: bool, kind: str, resources: Resources
) -> Any:
    """Derivative of the predicted mean, and of the standard deviation, in the inputs."""
    found = predict_with_gradient(ensemble, X, kind, resources)
    shape = (len(X), *ensemble.target_shape, ensemble.n_columns)
    mean = found.by_mean.reshape(shape)
    return (mean, found.by_std.reshape(shape)) if return_std else mean


def predict_with_gradient(
    ensemble: Ensemble, X: Array, kind: str, resources: Resources
) -> PredictionGradient:
    """Mean and standard deviation of the predictions, and their derivatives in the inputs."""
    check_kind(kind)
    mean = np.empty((len(X), ensemble.n_targets))
    by_mean = np.empty((*mean.shape, ensemble.n_columns))
    std, by_std = np.empty_like(mean), np.empty_like(by_mean)
    unit, trees, aside = ensemble.target_scaler.std, ensemble.boosted, aside_of(X)

    has_noise = kind == "observation"

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> _Asked:
        part = X[start:stop]
        solved, gradients = fitted.solver.differentiate(fitted.inputs_of(part), block)
        observed = _differentiate(fitted, solved, gradients, True).pull_back(fitted, part)
        if has_noise:
            return _Asked(observed, observed)
        own = _differentiate(fitted, solved, gradients, False)
        return _Asked(own.pull_back(fitted, part), observed)

    def consume(start: int, stop: int, said: list[_Asked]) -> None:
        part = X[start:stop]
        observed = _combine(ensemble.weights, [one.observed for one in said])
        combined = _combine(ensemble.weights, [one.predicted for one in said])
        if trees is not None:
            located = aside(trees, start, stop)
            observed, combined = (_lean(one, located, trees.share) for one in (observed, combined))
        combined = _calibrate(ensemble.shape, combined, observed)
        mean[start:stop] = ensemble.target_scaler.inverse_mean(combined.mean)
        by_mean[start:stop] = _by_column(ensemble, part, combined.by_mean * unit[:, None])
        scale, extra = ensemble.scale_factor * unit, _extra_variance(ensemble, part)
        std[start:stop], gradient = _std_and_gradient(combined, scale, extra)
        by_std[start:stop] = _by_column(ensemble, part, gradient)

    in_blocks(ensemble, answer, len(X), consume, resources, gradient=True)
    return PredictionGradient(mean, std, by_mean, by_std)


class _Differentiated(NamedTuple):
    """Predictions in scaled units, of one model or combined, and their derivatives."""

    mean: Array  # (q, t)
    scale2: Array  # (q, t) squared scale [E7]
    inverse_dof: Array  # (q,)
    by_mean: Array  # (q, t, d)
    by_log_scale2: Array  # (q, t, d) of its logarithm
    by_inverse_dof: Array  # (q, d)

    def pull_back(self, fitted: FittedModel, X: Array) -> _Differentiated:
        """In the inputs X (q, d), from those in the model's own, which are transformed."""
        pull_back = fitted.transform.pull_back
        return self._replace(
            by_mean=pull_back(X, self.by_mean),
            by_log_scale2=pull_back(X, self.by_log_scale2),
            by_inverse_dof=pull_back(X, self.by_inverse_dof),
        )


class _Asked(NamedTuple):
    """As in `lsgp.ensemble.predict`: what is asked for, and an observation there."""

    predicted: _Differentiated
    observed: _Differentiated


def _differentiate(
    fitted: FittedModel, solved: Predictions, gradients: QueryGradients, with_noise: bool
) -> _Differentiated:
    """[E7] of one model, in its own inputs."""
    model, q = fitted.model, len(solved.mean)
    noise = model.noise_of(np.ones(q)).reshape(q, -1) if with_noise else np.zeros((q, 1))
    if solved.noise_unit is not None:
        noise = noise * solved.noise_unit[:, None]
    relative = solved.relative_variance(0.0) + noise  # (q, 1 or t)
    by_variance = np.asarray(gradients.variance, dtype=float)
    if by_variance.ndim == 2:
        by_variance = by_variance[:, None, :]
    by_relative = by_variance + noise[:, :, None] * gradients.noise_unit[:, None, :]
    scale, dof = solved.scale.astype(float), solved.dof.astype(float)
    by_log_scale2 = gradients.scale / scale[:, :, None] + by_relative / relative[:, :, None]
    by_inverse_dof = np.where(np.isinf(dof), 0.0, -1.0 / dof**2)[:, None] * gradients.dof
    return _Differentiated(
        mean=solved.mean.astype(float),
        scale2=scale * relative,
        inverse_dof=1.0 / dof,
        by_mean=gradients.mean.astype(float),
        by_log_scale2=by_log_scale2,
        by_inverse_dof=by_inverse_dof,
    )


def _combine(weights: Array, said: list[_Differentiated]) -> _Differentiated:
    """The combination of several models (`lsgp.method.combination`), and its derivative."""
    if len(said) == 1:
        return said[0]
    pairs = list(zip(weights, said, strict=True))
    mean = np.asarray(sum(w * one.mean for w, one in pairs))
    by_mean = np.asarray(sum(w * one.by_mean for w, one in pairs))
    geometric = np.exp(sum(w * np.log(one.scale2) for w, one in pairs))
    by_geometric = sum(w * one.by_log_scale2 for w, one in pairs) * geometric[:, :, None]
    spread = sum(w * (one.mean - mean) ** 2 for w, one in pairs)
    by_spread = sum(
        2.0 * w * (one.mean - mean)[:, :, None] * (one.by_mean - by_mean) for w, one in pairs
    )
    scale2 = geometric + spread
    return _Differentiated(
        mean=mean,
        scale2=scale2,
        inverse_dof=np.asarray(sum(w * one.inverse_dof for w, one in pairs)),
        by_mean=by_mean,
        by_log_scale2=(by_geometric + by_spread) / scale2[:, :, None],
        by_inverse_dof=np.asarray(sum(w * one.by_inverse_dof for w, one in pairs)),
    )


def _calibrate(
    shape: Shape, combined: _Differentiated, observed: _Differentiated
) -> _Differentiated:
    """The shape of the combined distributions (`lsgp.method.combination`), and its derivative."""
    if not shape.is_noisy:
        combined = observed
    scale = np.sqrt(observed.scale2)
    elasticity = shape.elasticity(scale)[:, :, None]
    slope = shape.inverse_dof_slope(combined.inverse_dof)[:, None]
    return combined._replace(
        scale2=shape.factor(scale) ** 2 * combined.scale2,
        inverse_dof=shape.inverse_dof(combined.inverse_dof),
        by_log_scale2=combined.by_log_scale2 + elasticity * observed.by_log_scale2,
        by_inverse_dof=slope * combined.by_inverse_dof,
    )


def _lean(combined: _Differentiated, aside: Array, share: float) -> _Differentiated:
    """Blend as `lsgp.method.combination.blend_location`; trees are constant between their steps."""
    gap, between = aside - combined.mean, share * (1.0 - share)
    scale2 = combined.scale2 + between * gap**2
    by_scale2 = combined.scale2[:, :, None] * combined.by_log_scale2
    by_scale2 -= 2.0 * between * gap[:, :, None] * combined.by_mean
    return combined._replace(
        mean=combined.mean + share * gap,
        scale2=scale2,
        by_mean=(1.0 - share) * combined.by_mean,
        by_log_scale2=by_scale2 / scale2[:, :, None],
    )


def _std_and_gradient(combined: _Differentiated, unit: Array, extra: Array) -> tuple[Array, Array]:
    """scale sqrt(nu / (nu - 2)) (q, t) and its derivative (q, t, d), in the units ``unit`` (t,).

    ``extra`` (q, t) is variance that does not depend on the inputs.
    """
    own = unit**2 * combined.scale2
    scale = np.sqrt(own + extra)[:, :, None]
    by_scale = 0.5 * own[:, :, None] * combined.by_log_scale2 / scale
    # sqrt(nu / (nu - 2)) is (1 - 2 / nu)^(-1/2).
    rest = 1.0 - 2.0 * combined.inverse_dof
    rest = np.where(rest > 0, rest, np.nan)[:, None, None]
    by_dof = scale * combined.by_inverse_dof[:, None, :] / rest
    std = np.where(rest > 0, scale / np.sqrt(rest), np.inf)
    return std[:, :, 0], np.asarray((by_scale + by_dof) / np.sqrt(rest))


def _extra_variance(ensemble: Ensemble, X: Array) -> Array:
    """As in `lsgp.ensemble.predict.widen`: that of levels, which have no derivative."""
    if ensemble.encoder is None:
        return np.zeros((len(X), ensemble.n_targets))
    return ensemble.encoder.extra_variance(X, ensemble.n_targets)


def _by_column(ensemble: Ensemble, X: Array, gradient: Array) -> Array:
    """Derivatives (q, t, d) in the columns of a table from those (q, t, e) in the inputs.

    Columns that are no input have derivative 0, categories and dates none: NaN.
    """
    if ensemble.encoder is None:
        return gradient
    out = np.full((*gradient.shape[:2], ensemble.n_columns), np.nan)
    for j, (each, span) in enumerate(zip(ensemble.encoder.encodings, ensemble.spans, strict=True)):
        if isinstance(each.scheme, Number):
            is_there = ~each.is_missing(X[:, span])
            out[is_there, :, j] = gradient[is_there, :, span.start]
        elif isinstance(each.scheme, LeftOut):
            out[:, :, j] = 0.0
    return out
