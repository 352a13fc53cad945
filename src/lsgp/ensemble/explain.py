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
    """Neighbors of all queries in one model, or merged over all models, query by query."""

    query: NDArray[np.int64]  # (k,) number of the query
    rows: NDArray[np.int64]  # (k,) of a group, the row nearest to its mean
    weights: NDArray[Any]  # (k,)
    coefficients: NDArray[Any]  # (k, c): of all targets alike, or of each
    n_rows: NDArray[np.int64]  # (k,) 1, or those of a group
    y: NDArray[Any]  # (k, t) in scaled units

    def pad(self, values: NDArray[Any], n_queries: int, fill: float) -> NDArray[Any]:
        """Values (k, ...) of the neighbors as (q, w, ...)."""
        counts = np.bincount(self.query, minlength=n_queries)
        place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (n_queries, counts.max(initial=0), *values.shape[1:])
        padded = np.full(shape, fill, type(fill))
        padded[self.query, place] = values
        return padded


class Part(NamedTuple):
    """What one model says about all queries, in scaled units."""

    neighbors: Neighbors
    predicted: PredictiveDistribution
    n_effective: Array  # (q,)
    scale: Array  # (q, t), a standard deviation
    distance: Array  # (q,) from the data, relative to the data's own


class Explained(NamedTuple):
    """What explanations of numbers and of classes are made from."""

    shared: ExplainedQueries
    parts: list[Part]
    merged: Neighbors  # each row once for each query, nearest first; groups apart
    places: list[NDArray[np.intp]]  # of each model's neighbors among those
    without: NDArray[np.int32]  # (q,) training rows that are left out, or -1
    is_jittered: NDArray[np.bool_]  # (q,)


def explain(ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None) -> Explanation:
    """Neighbors of each query, what each contributes to the mean, and how far the data are."""
    shared, parts, merged, _, without, is_jittered = _explain_neighbors(ensemble, X, exclude)
    scaler, boosted = ensemble.target_scaler, ensemble.boosted
    coefficients = merged.pad(merged.coefficients, len(X), 0.0)
    scaled = merged.pad(merged.y, len(X), 0.0)
    said = [part.predicted for part in parts]
    aside = by_trees = None
    if boosted is not None:
        aside = boosted.locate_without(X, without)
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
    shape = (*shared.rows.shape, *ensemble.target_shape)
    is_coarse = any(fitted.model.is_coarse for fitted in ensemble.models)
    return Explanation(
        **vars(shared),
        coefficients=coefficients[:, :, 0] if coefficients.shape[2] == 1 else coefficients,
        observed=scaler.inverse_mean(scaled).reshape(shape),
        contributions=(scaled * coefficients * scaler.std).reshape(shape),
        baseline=scaler.mean.reshape(ensemble.target_shape),
        predicted=widen(ensemble, X, PredictiveDistribution(mean, spread, dof, is_jittered)),
        local_scale=ensemble.in_shape(scaler.inverse_scale(scale)),
        dof=dof,
        target_names=view.target_names(ensemble),
        by_trees=by_trees,
        n_rows=merged.pad(merged.n_rows, len(X), 0) if is_coarse else None,
    )


def explain_classes(
    ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None
) -> ClassExplanation:
    """Neighbors of each query, and how far each moved the probabilities."""
    own = classification_of(ensemble)
    shared, parts, merged, places, *_ = _explain_neighbors(ensemble, X, exclude)
    parts = [part._replace(predicted=widen_scaled(ensemble, X, part.predicted)) for part in parts]
    shape = (len(X), own.n_classes)
    others = np.reshape([one.log_proba(X) for one in own.others], (len(own.others), *shape))
    contributions = [np.empty((0, own.n_classes))]
    by_others, start, proba = np.empty((3, *shape))
    for q in range(len(X)):
        first = np.searchsorted(merged.query, q)
        lines = [
            _line_of(ensemble, k, part, q, place - first)
            for k, (part, place) in enumerate(zip(parts, places, strict=True))
        ]
        moved = np.zeros((np.count_nonzero(merged.query == q), own.n_classes))
        by_others[q], start[q], proba[q] = _walk(ensemble, lines, others[:, q], moved)
        contributions.append(moved)
    return ClassExplanation(
        **vars(shared),
        codes=merged.pad(codes_of_rows(ensemble, merged.rows), len(X), -1),
        contributions=merged.pad(np.concatenate(contributions), len(X), 0.0),
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
        given, n_rows = np.asarray(exclude), ensemble.n_rows
        is_valid = given.shape == (len(X),) and np.issubdtype(given.dtype, np.integer)
        if not is_valid or np.any((given < -1) | (given >= n_rows)):
            raise ValueError(
                f"exclude of shape {given.shape} and type {given.dtype} does not name one of the "
                f"{n_rows} training rows for each of {len(X)} queries. Give one row number per "
                "query, or -1 for none."
            )
        without, together = given.astype(np.int32), ensemble.left_out_together()
    queries = [fitted.inputs_of(X) for fitted in ensemble.models]
    parts = [
        _explain_one(fitted, own, failures, None if exclude is None else without, together)
        for fitted, own in zip(ensemble.models, queries, strict=True)
    ]
    failures.raise_if_any(len(X), heaviest.model)
    failures.warn_if_jittered(len(X), heaviest.model)
    shares = ensemble.weights / ensemble.weights.sum()
    # Each row once, with weights and coefficients averaged over the models.
    fields = zip(*(part.neighbors for part in parts), strict=True)
    every = Neighbors(*map(np.concatenate, fields))
    n, k = ensemble.n_rows, len(every.rows)
    # Groups of several models may have the same nearest row, and other rows.
    keys = every.query * (n + k) + np.where(every.n_rows == 1, every.rows, n + np.arange(k))
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    offsets = heaviest.problem.X[every.rows[first]].astype(float) - queries[0][every.query[first]]
    distances = np.sqrt(((offsets / heaviest.model.lengthscale) ** 2).sum(axis=1))
    order = np.lexsort([every.rows[first], distances, every.query[first]])
    place, kept = np.argsort(order)[position], first[order]
    share = np.repeat(shares, [len(part.neighbors.rows) for part in parts])
    coefficients = [np.bincount(place, share * each, len(kept)) for each in every.coefficients.T]
    merged = Neighbors(
        every.query[kept],
        every.rows[kept],
        np.bincount(place, share * every.weights, len(kept)),
        np.stack(coefficients, axis=1),
        every.n_rows[kept],
        every.y[kept],
    )
    kilometers = None
    if isinstance(ensemble.projection, Sphere):
        along = heaviest.transform.kilometers(offsets[order], np.zeros(offsets.shape[1]))
        kilometers = merged.pad(along, len(X), np.inf)
    extrapolation = np.asarray(sum(w * p.distance for w, p in zip(shares, parts, strict=True)))
    shared = ExplainedQueries(
        rows=merged.pad(merged.rows, len(X), -1),
        distances=merged.pad(distances[order], len(X), np.inf),
        weights=merged.pad(merged.weights, len(X), 0.0),
        n_effective=np.asarray(sum(w * p.n_effective for w, p in zip(shares, parts, strict=True))),
        extrapolation=extrapolation,
        is_extrapolating=extrapolation > 1.0,
        is_beyond_range=_is_beyond_range(ensemble, X, queries[0]),
        input_names=view.input_names(ensemble),
        kilometers=kilometers,
    )
    ends = np.cumsum([len(part.neighbors.rows) for part in parts])[:-1]
    places = np.split(place, ends)
    return Explained(shared, parts, merged, places, without, failures.is_jittered(len(X)))


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
    rows = [np.empty(0, np.int32)]
    weights: list[NDArray[Any]] = [np.empty(0)]
    betas: list[list[NDArray[Any]]] = []
    for number, (columns, solver) in enumerate(levels):
        betas.append([np.empty(0)])
        for i, (_, system) in enumerate(solver.systems(queries, failures, without, groups)):
            mean[i, columns] = system.mean
            variance[i, columns] = system.variance
            scale[i, columns], dof[i] = scale_and_dof(fitted.model, system)  # [E6]
            betas[-1].append(system.beta)
            if number == 0:  # all levels have the same neighbors
                rows.append(system.rows)
                weights.append(system.weight)
                n_effective[i] = np.minimum(system.weight, 1.0).sum()
                noise_unit[i] = system.noise_unit
    of_query = np.repeat(np.arange(q), [len(each) for each in rows[1:]])
    units = fitted.solver.unit_info(np.concatenate(rows))
    coefficients = np.empty((len(units.rows), t if len(levels) > 1 else 1))
    for (columns, _), beta in zip(levels, betas, strict=True):
        into = columns if len(levels) > 1 else [0]
        coefficients[:, into] = np.concatenate(beta)[:, None]
    own = (of_query, units.rows, np.concatenate(weights), coefficients, units.n_rows, units.y)
    status = np.zeros(q, np.int32)  # failures are noted
    solved = Predictions(mean, variance, scale, dof, status, noise_unit)
    predicted = distribution_of(solved, fitted.model.noise_of(np.ones(q)))
    distance = fitted.distance(queries, Exclusions.of_rows(without, groups))
    return Part(Neighbors(*own), predicted, n_effective, np.sqrt(scale), distance)


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
    its, scale = part.neighbors.query == q, part.scale[q]
    parts = part.neighbors.coefficients[its] * part.neighbors.y[its] * scaler.std
    # Of the latent function: predictions are of observations.
    relative = (part.predicted.scale[q] / scale) ** 2 - fitted.model.noise_variance
    scale = scaler.inverse_scale(scale * np.sqrt(np.maximum(relative, 0.0)))
    start = latent_of(scaler.mean[None], scale[None], own.n_classes)
    if own.n_classes == 2:
        parts = np.column_stack([-parts[:, 0], parts[:, 0]])
    return _Line(own.links[k], fitted.weight, places[its], start.mean[0], parts, start.variance)


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
