# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of an ensemble's predictions in the inputs, block by block.

Each model's are those of its solver, at fixed neighborhoods; from there on they go through the
noise [E7], the combination of models, the input transforms and the units of the targets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import aside_of, check_kind, extra_variance, in_blocks
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


class _Differentiated(NamedTuple):
    """Predictions in scaled units, of one model or combined, and their derivatives."""

    mean: Array  # (q, t)
    scale2: Array  # (q, t) squared scale [E7]
    inverse_dof: Array  # (q,)
    by_mean: Array  # (q, t, d)
    by_scale2: Array  # (q, t, d)
    by_inverse_dof: Array  # (q, d)


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
    mean, std = np.empty((2, len(X), ensemble.n_targets))
    by_mean, by_std = np.empty((2, *mean.shape, ensemble.n_columns))
    scaler, trees, aside = ensemble.target_scaler, ensemble.boosted, aside_of(X)

    def answer(
        fitted: FittedModel, part: slice, block: Block
    ) -> tuple[_Differentiated, _Differentiated]:
        """What is asked for, and an observation there, by whose scale calibration goes."""
        solved = fitted.solver.differentiate(fitted.inputs_of(X[part]), block)
        observed = _differentiate(fitted, *solved, X[part], with_noise=True)
        if kind == "observation":
            return observed, observed
        return _differentiate(fitted, *solved, X[part], with_noise=False), observed

    def consume(part: slice, said: list[tuple[_Differentiated, _Differentiated]]) -> None:
        combined, observed = (_combine(ensemble.weights, of) for of in zip(*said, strict=True))
        if trees is not None:
            located = aside(trees, part)
            combined, observed = (_lean(one, located, trees.share) for one in (combined, observed))
        combined = _calibrate(ensemble.shape, combined, observed)
        mean[part] = scaler.inverse_mean(combined.mean)
        by_mean[part] = _by_column(ensemble, X[part], combined.by_mean * scaler.std[:, None])
        unit = ensemble.scale_factor * scaler.std
        std[part], by_input = _std(combined, unit, extra_variance(ensemble, X[part]))
        by_std[part] = _by_column(ensemble, X[part], by_input)

    in_blocks(ensemble, answer, len(X), consume, resources, gradient=True)
    return PredictionGradient(mean, std, by_mean, by_std)


def _differentiate(
    fitted: FittedModel,
    solved: Predictions,
    gradients: QueryGradients,
    X: Array,
    with_noise: bool,
) -> _Differentiated:
    """[E7] of one model, in the inputs X (q, d) before its transform."""
    model, q, pull_back = fitted.model, len(solved.mean), fitted.transform.pull_back
    noise = model.noise_of(np.ones(q)).reshape(q, -1) if with_noise else np.zeros((q, 1))
    if solved.noise_unit is not None:
        noise = noise * solved.noise_unit[:, None]
    relative = solved.relative_variance(0.0) + noise  # (q, 1 or t)
    by_variance = np.asarray(gradients.variance, dtype=float)
    if by_variance.ndim == 2:
        by_variance = by_variance[:, None, :]
    by_relative = by_variance + noise[:, :, None] * gradients.noise_unit[:, None, :]
    scale, dof = solved.scale.astype(float), solved.dof.astype(float)
    by_inverse_dof = np.where(np.isinf(dof), 0.0, -1.0 / dof**2)[:, None] * gradients.dof
    by_scale2 = gradients.scale * relative[:, :, None] + scale[:, :, None] * by_relative
    return _Differentiated(
        mean=solved.mean.astype(float),
        scale2=scale * relative,
        inverse_dof=1.0 / dof,
        by_mean=pull_back(X, gradients.mean.astype(float)),
        by_scale2=pull_back(X, by_scale2),
        by_inverse_dof=pull_back(X, by_inverse_dof),
    )


def _combine(weights: Array, said: tuple[_Differentiated, ...]) -> _Differentiated:
    """The combination of several models (`lsgp.method.combination`), and its derivative."""
    if len(said) == 1:
        return said[0]

    def average(values: Iterable[Array]) -> Array:
        return np.asarray(sum(w * value for w, value in zip(weights, values, strict=True)))

    mean, by_mean = average(one.mean for one in said), average(one.by_mean for one in said)
    geometric = np.exp(average(np.log(one.scale2) for one in said))[:, :, None]
    by_log = average(one.by_scale2 / one.scale2[:, :, None] for one in said)
    spread = average((one.mean - mean) ** 2 for one in said)
    by_spread = average(
        2.0 * (one.mean - mean)[:, :, None] * (one.by_mean - by_mean) for one in said
    )
    return _Differentiated(
        mean=mean,
        scale2=geometric[:, :, 0] + spread,
        inverse_dof=average(one.inverse_dof for one in said),
        by_mean=by_mean,
        by_scale2=geometric * by_log + by_spread,
        by_inverse_dof=average(one.by_inverse_dof for one in said),
    )


def _lean(combined: _Differentiated, aside: Array, share: float) -> _Differentiated:
    """Blend as `lsgp.method.combination.blend_location`; trees are constant between their steps."""
    gap, between = aside - combined.mean, share * (1.0 - share)
    return combined._replace(
        mean=combined.mean + share * gap,
        scale2=combined.scale2 + between * gap**2,
        by_mean=(1.0 - share) * combined.by_mean,
        by_scale2=combined.by_scale2 - 2.0 * between * gap[:, :, None] * combined.by_mean,
    )


def _calibrate(
    shape: Shape, combined: _Differentiated, observed: _Differentiated
) -> _Differentiated:
    """The shape of the combined distributions (`lsgp.method.combination`), and its derivative."""
    if not shape.is_noisy:
        combined = observed
    scale = np.sqrt(observed.scale2)
    factor2, by_log = shape.factor(scale) ** 2, shape.elasticity(scale) / observed.scale2
    by_factor = (combined.scale2 * by_log)[:, :, None] * observed.by_scale2
    slope = shape.inverse_dof_slope(combined.inverse_dof)[:, None]
    return combined._replace(
        scale2=factor2 * combined.scale2,
        inverse_dof=shape.inverse_dof(combined.inverse_dof),
        by_scale2=factor2[:, :, None] * (combined.by_scale2 + by_factor),
        by_inverse_dof=slope * combined.by_inverse_dof,
    )


def _std(combined: _Differentiated, unit: Array, extra: Array) -> tuple[Array, Array]:
    """scale sqrt(nu / (nu - 2)) (q, t) and its derivative (q, t, d), in the units ``unit`` (t,).

    ``extra`` (q, t) is variance that does not depend on the inputs.
    """
    scale = np.sqrt(unit**2 * combined.scale2 + extra)[:, :, None]
    by_scale = 0.5 * unit[:, None] ** 2 * combined.by_scale2 / scale
    # sqrt(nu / (nu - 2)) is (1 - 2 / nu)^(-1/2).
    rest = 1.0 - 2.0 * combined.inverse_dof
    rest = np.where(rest > 0, rest, np.nan)[:, None, None]
    by_dof = scale * combined.by_inverse_dof[:, None, :] / rest
    std = np.where(rest > 0, scale / np.sqrt(rest), np.inf)
    return std[:, :, 0], np.asarray((by_scale + by_dof) / np.sqrt(rest))


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
