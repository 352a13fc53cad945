# SPDX-License-Identifier: BSD-3-Clause
"""Why a prediction is what it is: neighbors, their contributions, and distance from the data.

The mean is linear in the targets: [E4] is kᵀα = Σ βᵢ yᵢ with β = A⁻¹k, in every local system, and
the combination of several models is a weighted sum of them. So each training row has one
coefficient, and its contribution is exact, not an approximation of the model.

Probabilities are a function of such means. So the way from what is known without neighbors (the
shares of the classes) to the prediction is walked in a straight line of the means, and every step
that the probabilities make is divided among the neighbors by their parts of it [C7]: their
contributions add up.

Queries are solved one at a time in double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.local_system import scale_and_dof
from lsgp.ensemble import view
from lsgp.ensemble.classify import classification_of, codes_of_rows
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.explanation import ClassExplanation, ExplainedQueries, Explanation
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import widen, widen_scaled
from lsgp.inputs.transforms import Sphere
from lsgp.method.combination import combine
from lsgp.method.contract import Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.link import Latent, Link, latent_of, log_pool
from lsgp.search.contract import Exclusions
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]

#: Steps of the way on which contributions to probabilities are added up (Gauss-Legendre); the rest
#: of the change is divided among them by their sizes.
N_STEPS = 48


class Neighbors(NamedTuple):
    """Of one query in one model, or merged over all models."""

    rows: NDArray[np.int64]  # (k,)
    distances: NDArray[Any]  # (k,)
    weights: NDArray[Any]  # (k,)
    coefficients: NDArray[Any]  # (k, c): of all targets alike, or of each
    n_rows: NDArray[np.int64]  # (k,) 1, or those of a group
    y: NDArray[Any]  # (k, t) in scaled units


class Part(NamedTuple):
    """What one model says about all queries, in scaled units."""

    neighbors: list[Neighbors]
    predicted: PredictiveDistribution
    n_effective: Array  # (q,)
    scale: Array  # (q, t), a standard deviation
    distance: Array  # (q,) from the data, relative to the data's own


class Explained(NamedTuple):
    """What explanations of numbers and of classes are made from."""

    shared: ExplainedQueries
    parts: list[Part]
    merged: list[Neighbors]  # of each query, each row once, nearest first; groups apart
    places: list[list[NDArray[np.intp]]]  # of each query and model, of its neighbors among those
    without: NDArray[np.int32]  # (q,) training rows that are left out, or -1
    is_jittered: NDArray[np.bool_]  # (q,)


def explain(ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None) -> Explanation:
    """Neighbors of each query, what each contributes to the mean, and how far the data are."""
    explained = _explain_neighbors(ensemble, X, exclude)
    parts, merged = explained.parts, explained.merged
    scaler, boosted, t = ensemble.target_scaler, ensemble.boosted, ensemble.n_targets
    n_columns = t if len(ensemble.heaviest.solver.parts()) > 1 else 1
    coefficients = _pad([one.coefficients for one in merged], 0.0, n_columns)
    scaled = _pad([one.y for one in merged], 0.0, t)
    said = [part.predicted for part in parts]
    aside = by_trees = None
    if boosted is not None:
        aside = boosted.locate_without(X, explained.without)
        coefficients *= 1.0 - boosted.share
        by_trees = ensemble.in_shape(boosted.share * scaler.std * aside)
    predicted = ensemble.combine(said, aside=aside)
    dof = predicted.dof[:, 0]
    # Calibration multiplies scales by the factor, and by what depends on an observation's scale.
    observed = ensemble.leaning(combine(said, ensemble.weights), aside)
    scale = ensemble.scale_factor * ensemble.shape.factor(observed.scale)
    for weight, part in zip(ensemble.weights, parts, strict=True):
        scale = scale * part.scale**weight
    mean, spread = (ensemble.in_shape(each) for each in (predicted.mean, predicted.scale))
    in_units = PredictiveDistribution(mean, spread, dof, explained.is_jittered)
    shape = (*explained.shared.rows.shape, *ensemble.target_shape)
    is_coarse = any(fitted.model.is_coarse for fitted in ensemble.models)
    return Explanation(
        **vars(explained.shared),
        coefficients=coefficients[:, :, 0] if n_columns == 1 else coefficients,
        observed=scaler.inverse_mean(scaled).reshape(shape),
        contributions=(scaled * coefficients * scaler.std).reshape(shape),
        baseline=scaler.mean.reshape(ensemble.target_shape),
        predicted=widen(ensemble, X, in_units),
        local_scale=ensemble.in_shape(scaler.inverse_scale(scale)),
        dof=dof,
        target_names=view.target_names(ensemble),
        by_trees=by_trees,
        n_rows=_pad([one.n_rows for one in merged], 0) if is_coarse else None,
    )


def explain_classes(
    ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None
) -> ClassExplanation:
    """Neighbors of each query, and how far each moved the probabilities."""
    own, explained = classification_of(ensemble), _explain_neighbors(ensemble, X, exclude)
    parts = [
        part._replace(predicted=widen_scaled(ensemble, X, part.predicted))
        for part in explained.parts
    ]
    shape = (len(X), own.n_classes)
    others = np.reshape([one.log_proba(X) for one in own.others], (len(own.others), *shape))
    contributions, (by_others, start, proba) = [], np.empty((3, *shape))
    for q, (places, merged) in enumerate(zip(explained.places, explained.merged, strict=True)):
        lines = [
            _line_of(ensemble, k, part, q, place)
            for k, (part, place) in enumerate(zip(parts, places, strict=True))
        ]
        moved = np.zeros((len(merged.rows), own.n_classes))
        by_others[q], start[q], proba[q] = _walk(ensemble, lines, others[:, q], moved)
        contributions.append(moved)
    return ClassExplanation(
        **vars(explained.shared),
        codes=_pad([codes_of_rows(ensemble, one.rows) for one in explained.merged], -1),
        contributions=_pad(contributions, 0.0, own.n_classes),
        others=by_others,
        start=start,
        probabilities=proba,
        classes=own.classes,
    )


# -- neighbors ---------------------------------------------------------------------------------


def _explain_neighbors(ensemble: Ensemble, X: Array, exclude: ArrayLike | None) -> Explained:
    """What each model says of queries, and the neighbors of each query in all of them."""
    without, failures, heaviest = np.full(len(X), -1, np.int32), Failures(), ensemble.heaviest
    together = None
    if exclude is not None:
        without = _checked_rows(exclude, len(X), ensemble.n_rows)
        together = ensemble.left_out_together()
    queries = [fitted.inputs_of(X) for fitted in ensemble.models]
    parts = [
        _explain_one(fitted, own, failures, None if exclude is None else without, together)
        for fitted, own in zip(ensemble.models, queries, strict=True)
    ]
    failures.raise_if_any(len(X), heaviest.model)
    failures.warn_if_jittered(len(X), heaviest.model)
    shares = ensemble.weights / ensemble.weights.sum()
    merged, places = [], []
    for q, query in enumerate(queries[0]):
        neighbors, place = _merge([part.neighbors[q] for part in parts], shares, heaviest, query)
        merged.append(neighbors)
        places.append(place)
    kilometers = None
    if isinstance(ensemble.projection, Sphere):
        along = [
            heaviest.transform.kilometers(heaviest.problem.X[one.rows], query)
            for one, query in zip(merged, queries[0], strict=True)
        ]
        kilometers = _pad(along, np.inf)
    extrapolation = np.asarray(sum(w * p.distance for w, p in zip(shares, parts, strict=True)))
    shared = ExplainedQueries(
        rows=_pad([one.rows for one in merged], -1),
        distances=_pad([one.distances for one in merged], np.inf),
        weights=_pad([one.weights for one in merged], 0.0),
        n_effective=np.asarray(sum(w * p.n_effective for w, p in zip(shares, parts, strict=True))),
        extrapolation=extrapolation,
        is_extrapolating=extrapolation > 1.0,
        is_beyond_range=_is_beyond_range(ensemble, X, queries[0]),
        input_names=view.input_names(ensemble),
        kilometers=kilometers,
    )
    return Explained(shared, parts, merged, places, without, failures.is_jittered(len(X)))


def _checked_rows(exclude: ArrayLike, n_queries: int, n_rows: int) -> NDArray[np.int32]:
    rows = np.asarray(exclude)
    is_valid = rows.shape == (n_queries,) and np.issubdtype(rows.dtype, np.integer)
    if not is_valid or np.any((rows < -1) | (rows >= n_rows)):
        raise ValueError(
            f"exclude of shape {rows.shape} and type {rows.dtype} does not name one of the "
            f"{n_rows} training rows for each of {n_queries} queries. Give one row number per "
            "query, or -1 for none."
        )
    return rows.astype(np.int32)


def _explain_one(
    fitted: FittedModel,
    queries: Array,
    failures: Failures,
    without: NDArray[np.int32] | None,
    groups: NDArray[np.int32] | None,
) -> Part:
    """What one model says about queries in its own inputs, and from which rows."""
    q, t = len(queries), fitted.problem.y.shape[1]
    levels = fitted.solver.parts()
    mean, variance, scale = np.empty((3, q, t))
    dof, noise_unit, n_effective = np.empty((3, q))
    neighbors: list[Neighbors] = []
    for number, (columns, solver) in enumerate(levels):
        for i, (_, system) in enumerate(solver.systems(queries, failures, without, groups)):
            mean[i, columns] = system.mean
            variance[i, columns] = system.variance
            scale[i, columns], dof[i] = scale_and_dof(fitted.model, system)  # [E6]
            if number == 0:
                r = np.sqrt((system.z**2).sum(axis=1))
                shares = np.empty((len(r), t if len(levels) > 1 else 1))
                units = fitted.solver.unit_info(system.rows)
                own = units.n_rows, units.y
                neighbors.append(Neighbors(units.rows, r, system.weight, shares, *own))
                n_effective[i] = np.minimum(system.weight, 1.0).sum()
                noise_unit[i] = system.noise_unit
            into = columns if len(levels) > 1 else [0]
            neighbors[i].coefficients[:, into] = system.beta[:, None]
    status = np.zeros(q, np.int32)  # failures are noted
    solved = Predictions(mean, variance, scale, dof, status, noise_unit)
    predicted = distribution_of(solved, fitted.model.noise_of(np.ones(q)))
    distance = fitted.distance(queries, Exclusions.of_rows(without, groups))
    return Part(neighbors, predicted, n_effective, np.sqrt(scale), distance)


def _merge(
    parts: list[Neighbors], shares: Array, heaviest: FittedModel, query: Array
) -> tuple[Neighbors, list[NDArray[np.intp]]]:
    """The neighbors of one query in all models, with weights and coefficients averaged.

    Also the places of each model's neighbors among them.
    """
    rows, n_rows, y = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "n_rows", "y")
    )
    # Groups of several models may have the same nearest row, and other rows.
    keys = np.where(n_rows == 1, rows, len(heaviest.problem.X) + np.arange(len(rows)))
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    z = (heaviest.problem.X[rows[first]].astype(float) - query) / heaviest.model.lengthscale
    distances = np.sqrt((z**2).sum(axis=1))
    order = np.lexsort([rows[first], distances])
    place, kept = np.argsort(order)[position], first[order]

    def total(columns: list[NDArray[Any]]) -> NDArray[Any]:
        weighted = [w * values for w, values in zip(shares, columns, strict=True)]
        return np.bincount(place, np.concatenate(weighted), len(kept))

    coefficients = [
        total([part.coefficients[:, c] for part in parts])
        for c in range(parts[0].coefficients.shape[1])
    ]
    merged = Neighbors(
        rows[kept],
        distances[order],
        total([part.weights for part in parts]),
        np.stack(coefficients, axis=1),
        n_rows[kept],
        y[kept],
    )
    return merged, np.split(place, np.cumsum([len(part.rows) for part in parts])[:-1])


def _pad(parts: list[NDArray[Any]], fill: float, *rest: int) -> NDArray[Any]:
    """Arrays (k, *rest) of several lengths in one, (q, w, *rest)."""
    longest = max(map(len, parts), default=0)
    padded = np.full((len(parts), longest, *rest), fill, type(fill))
    for row, part in zip(padded, parts, strict=True):
        row[: len(part)] = part
    return padded


def _is_beyond_range(ensemble: Ensemble, X: Array, queries: Array) -> NDArray[np.bool_]:
    """Whether columns are outside the training range, or at a level never seen, (q, d).

    Transforms are monotone, so compare there.
    """
    fitted = ensemble.heaviest
    low, high = fitted.input_range
    queries = queries.astype(low.dtype)
    beyond: NDArray[np.bool_] = (queries < low) | (queries > high)
    # A constant column is 0 after its transform: only its center remembers the constant.
    constant = np.isinf(fitted.transform.scale)
    columns = fitted.transform.project(X)
    beyond[:, constant] = columns[:, constant] != fitted.transform.center[constant]
    beyond = fitted.transform.of_inputs(beyond)
    if ensemble.encoder is None:
        return beyond
    unseen, encodings = ensemble.encoder.is_unseen(X), ensemble.encoder.encodings
    return np.column_stack(
        [
            unseen[:, j] if each.kind == "category" else beyond[:, span].any(axis=1)
            for j, (each, span) in enumerate(zip(encodings, ensemble.spans, strict=True))
        ]
    )


# -- steps of probabilities --------------------------------------------------------------------


class _Line(NamedTuple):
    """The straight line of one model's latent means, from no neighbors to all of them."""

    link: Link
    weight: float
    places: NDArray[np.intp]  # (m,) of its neighbors among those of all models
    start: Array  # (C,) latent means without neighbors
    parts: Array  # (m, C) of the latent means
    variance: Array  # (1, C)

    def at(self, t: float) -> Latent:
        return Latent((self.start + t * self.parts.sum(axis=0))[None], self.variance)

    def log_proba_by_parts(self, t: float) -> Array:
        """What each part of the means moves the model's log probabilities by, (m, C).

        d log p_c = r_c (dL_c − Σ_j s_j dL_j), with r_c the softmax's share of p_c.
        """
        latent, link = self.at(t), self.link
        by_logit = self.parts * link.by_mean(latent)
        share = link.softmax_share(latent)[0]
        softmax = share * np.exp(link.log_proba(latent)[0]) / (1.0 - link.prior_share)
        return np.asarray(share * (by_logit - (by_logit @ softmax)[:, None]))


def _line_of(ensemble: Ensemble, k: int, part: Part, q: int, places: NDArray[np.intp]) -> _Line:
    own, scaler, fitted = classification_of(ensemble), ensemble.target_scaler, ensemble.models[k]
    neighbors, scale = part.neighbors[q], part.scale[q]
    parts = neighbors.coefficients * np.asarray(neighbors.y, dtype=float) * scaler.std
    # Of the latent function: predictions are of observations.
    relative = (part.predicted.scale[q] / scale) ** 2 - fitted.model.noise_variance
    scale = scaler.inverse_scale(scale * np.sqrt(np.maximum(relative, 0.0)))
    start = latent_of(scaler.mean[None], scale[None], own.n_classes)
    if own.n_classes == 2:
        parts = np.column_stack([-parts[:, 0], parts[:, 0]])
    return _Line(own.links[k], fitted.weight, places, start.mean[0], parts, start.variance)


def _walk(
    ensemble: Ensemble, lines: list[_Line], others: Array, contributions: Array
) -> tuple[Array, Array, Array]:
    """[C7] Add the contributions (k, C) of the neighbors of one query, in place.

    ``others`` (m, C) are log probabilities of the other members. Returns what these add, and the
    probabilities at the start and in the end, (C,) each.
    """
    own = classification_of(ensemble)
    weights, log_prior = [member.weight for member in own.others], np.log(own.prior)
    by_others = np.zeros(own.n_classes)

    def proba_at(t: float) -> Array:
        log_p = [line.link.log_proba(line.at(t)) for line in lines]
        log_p += [((1.0 - t) * log_prior + t * one)[None] for one in others]
        return np.exp(log_pool(log_p, [*(line.weight for line in lines), *weights]))[0]

    def by_pool(p: Array, moved: Array) -> Array:
        """What moves (m, C) of the pool's log weights do to its probabilities, (m, C)."""
        return np.asarray(p * (moved - (moved @ p)[:, None]))

    for node, step in zip(*np.polynomial.legendre.leggauss(N_STEPS), strict=True):
        t, dt = 0.5 * (node + 1.0), 0.5 * step
        p = proba_at(t)
        for line in lines:
            moved = line.weight * line.log_proba_by_parts(t)
            contributions[line.places] += dt * by_pool(p, moved)
        moved = np.reshape(weights, (-1, 1)) * (others - log_prior)
        by_others += dt * by_pool(p, moved).sum(axis=0)
    start, proba = proba_at(0.0), proba_at(1.0)
    rest = proba - start - contributions.sum(axis=0) - by_others
    size = np.abs(contributions)
    contributions += rest * size / np.maximum(size.sum(axis=0), np.finfo(float).tiny)
    return by_others, start, proba
