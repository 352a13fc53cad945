# SPDX-License-Identifier: BSD-3-Clause
"""Why probabilities are what they are: which neighbors of which class moved them, and how far.

The latent mean of a model is linear in the targets, μ = Σ βᵢ yᵢ [E4], and the probabilities are a
function of the means. So the way from what is known without neighbors (the shares of the classes)
to the prediction is walked in a straight line of the means, and every step that the probabilities
make is divided among the neighbors by their parts of it [C7]: their contributions add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.ensemble.classify import classification_of, codes_of_rows
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.explain import Merged, Part, check_left_out, explain_neighbors, pad
from lsgp.ensemble.explanation import ExplainedQueries
from lsgp.ensemble.predict import widen_scaled
from lsgp.inputs.containers import make_frame, name_columns
from lsgp.method.link import Latent, Link, latent_of, log_pool

Array = NDArray[np.float64]

#: Steps of the way on which contributions are added up (Gauss-Legendre); what their sum is off
#: by is divided among them by their sizes.
N_STEPS = 48


class ClassNeighbors(NamedTuple):
    """The neighbors of one query, nearest first; fields are as in `ClassExplanation`."""

    rows: NDArray[np.int64]  # (k,)
    distances: Array  # (k,)
    weights: Array  # (k,)
    labels: NDArray[Any]  # (k,)
    contributions: Array  # (k, C)
    kilometers: Array | None = None  # (k,)


@dataclass(frozen=True, eq=False)
class ClassExplanation(ExplainedQueries):
    """What the probabilities of q queries are made of; from `LSGPClassifier.explain`.

    Arrays of neighbors have shape (q, w), nearest first, padded to the largest number w of
    neighbors; `of_query` gives those of one query without the padding.

    Attributes
    ----------
    rows : integer array of shape (q, w)
        Training rows, as numbered by `loo` (rows of zero sample weight do not count); -1 pads.
    distances : array of shape (q, w)
        In the scaled metric of the heaviest model; infinite where padded.
    weights : array of shape (q, w)
        The localizer's weight, averaged over the models.
    codes : integer array of shape (q, w)
        The row's class, as a place in ``classes``; -1 pads.
    contributions : array of shape (q, w, C)
        What the row moved the probability of each class by.
    others : array of shape (q, C)
        What members that are no local models moved it by: logistic regression and GPs of log odds,
        where rows are few; 0 elsewhere.
    start : array of shape (q, C)
        Probabilities without any neighbor's word:
        ``start + contributions.sum(axis=1) + others`` are the probabilities.
    probabilities : array of shape (q, C)
    n_effective : array of shape (q,)
        Effective number of neighbors, averaged over the models.
    extrapolation : array of shape (q,)
    is_extrapolating : boolean array of shape (q,)
    is_beyond_range : boolean array of shape (q, d)
        As in `Explanation`.
    classes : array of shape (C,)
    input_names : list of str
    kilometers : array of shape (q, w) or None
        As in `Explanation`.
    """

    rows: NDArray[np.int64]
    distances: Array
    weights: Array
    codes: NDArray[np.int64]
    contributions: Array
    others: Array
    start: Array
    probabilities: Array
    n_effective: Array
    extrapolation: Array
    is_extrapolating: NDArray[np.bool_]
    is_beyond_range: NDArray[np.bool_]
    classes: NDArray[Any]
    input_names: list[str]
    kilometers: Array | None = None

    def of_query(self, query: int) -> ClassNeighbors:
        """The neighbors of one query, without padding."""
        kept = self.rows[query] >= 0
        return ClassNeighbors(
            self.rows[query][kept],
            self.distances[query][kept],
            self.weights[query][kept],
            self.classes[self.codes[query][kept]],
            self.contributions[query][kept],
            None if self.kilometers is None else self.kilometers[query][kept],
        )

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per query and neighbor; ``library`` is "pandas" or "polars"."""
        kept = self.rows >= 0
        columns: dict[str, object] = {
            "query": np.nonzero(kept)[0],
            "row": self.rows[kept],
            **self._distance_columns(),
            "label": self.classes[self.codes[kept]],
        }
        names = [str(label) for label in self.classes.tolist()]
        columns |= name_columns("contribution", self.contributions[kept], names)
        return make_frame(columns, library)

    def summary_frame(self, library: str = "pandas") -> Any:
        """One row per query; ``library`` is "pandas" or "polars"."""
        names = [str(label) for label in self.classes.tolist()]
        columns: dict[str, object] = {
            "query": np.arange(len(self)),
            "label": self.classes[np.argmax(self.probabilities, axis=1)],
        }
        columns |= name_columns("probability", self.probabilities, names)
        columns |= name_columns("start", self.start, names)
        columns["n_neighbors"] = self.n_neighbors
        columns["n_effective"] = self.n_effective
        return make_frame(columns | self._extrapolation_columns(), library)


def explain_classes(
    ensemble: Ensemble, X: Array, exclude: ArrayLike | None = None
) -> ClassExplanation:
    """Neighbors of each query, and how far each moved the probabilities.

    Solved one query at a time in double precision.
    """
    own = classification_of(ensemble)
    left_out = check_left_out(exclude, len(X), ensemble)
    parts, merged, near, _ = explain_neighbors(ensemble, X, left_out, ensemble.group_numbers)
    parts = [part._replace(predicted=widen_scaled(ensemble, X, part.predicted)) for part in parts]
    others = [member.log_proba(X) for member in own.others]
    walked = [
        _walk(ensemble, parts, [log_p[q] for log_p in others], q, merged[q]) for q in range(len(X))
    ]
    shape = (len(X), own.n_classes)
    codes = [codes_of_rows(ensemble, one.neighbors.rows) for one in merged]
    return ClassExplanation(
        **near._asdict(),
        codes=pad(codes, -1, np.int64),
        contributions=pad([one.contributions for one in walked], 0.0, np.float64, own.n_classes),
        others=np.reshape([one.others for one in walked], shape),
        start=np.reshape([one.start for one in walked], shape),
        probabilities=np.reshape([one.proba for one in walked], shape),
        classes=own.classes,
    )


class _Walked(NamedTuple):
    """The way of one query with k neighbors."""

    contributions: Array  # (k, C)
    others: Array  # (C,)
    start: Array  # (C,)
    proba: Array  # (C,)


class _Member(NamedTuple):
    """One model on the way of one query."""

    link: Link
    weight: float
    places: NDArray[np.intp]  # (m,) of its neighbors among those of all models
    base: Array  # (C,) latent means without neighbors
    parts: Array  # (m, C) of the latent means
    variance: Array  # (1, C)

    def at(self, t: float) -> Latent:
        return Latent((self.base + t * self.parts.sum(axis=0))[None], self.variance)


def _walk(
    ensemble: Ensemble, parts: list[Part], others: list[Array], q: int, merged: Merged
) -> _Walked:
    own = classification_of(ensemble)
    members = [
        _member(ensemble, k, part, q, places)
        for k, (part, places) in enumerate(zip(parts, merged.places, strict=True))
    ]
    of_others = [member.weight for member in own.others]
    log_prior = np.log(own.prior)
    contributions = np.zeros((len(merged.neighbors.rows), own.n_classes))
    by_others = np.zeros(own.n_classes)

    def proba_at(t: float) -> Array:
        log_p = [member.link.log_proba(member.at(t)) for member in members]
        log_p += [((1.0 - t) * log_prior + t * one)[None] for one in others]
        return np.exp(log_pool(log_p, [*(m.weight for m in members), *of_others]))[0]

    for node, step in zip(*np.polynomial.legendre.leggauss(N_STEPS), strict=True):
        t, dt = 0.5 * (node + 1.0), 0.5 * step
        p = proba_at(t)
        for member in members:
            moved = member.weight * _log_proba_by_parts(member, t)
            contributions[member.places] += dt * _by_pool(p, moved)  # [C7]
        for weight, one in zip(of_others, others, strict=True):
            by_others += dt * _by_pool(p, weight * (one - log_prior)[None])[0]
    start, proba = proba_at(0.0), proba_at(1.0)
    rest = proba - start - contributions.sum(axis=0) - by_others
    size = np.abs(contributions)
    contributions += rest * size / np.maximum(size.sum(axis=0), np.finfo(float).tiny)
    return _Walked(contributions, by_others, start, proba)


def _member(ensemble: Ensemble, k: int, part: Part, q: int, places: NDArray[np.intp]) -> _Member:
    own, scaler = classification_of(ensemble), ensemble.target_scaler
    fitted, neighbors = ensemble.models[k], part.neighbors[q]
    parts = neighbors.coefficients * np.asarray(neighbors.y, dtype=float) * scaler.std
    noise = fitted.model.noise_variance
    scale = part.scale[q] * np.sqrt(_relative_variance(part, q, noise))
    base = latent_of(scaler.mean[None], scaler.inverse_scale(scale)[None], own.n_classes)
    if own.n_classes == 2:
        parts = np.column_stack([-parts[:, 0], parts[:, 0]])
    return _Member(own.links[k], fitted.weight, places, base.mean[0], parts, base.variance)


def _relative_variance(part: Part, q: int, noise: float) -> Array:
    """Latent variance relative to the scale, from that of an observation."""
    return np.maximum((part.predicted.scale[q] / part.scale[q]) ** 2 - noise, 0.0)


def _log_proba_by_parts(member: _Member, t: float) -> Array:
    """What each part of the means moves the member's log probabilities by, (m, C).

    d log p_c = r_c (dL_c − Σ_j s_j dL_j), with r_c what of p_c is the softmax's.
    """
    latent, link = member.at(t), member.link
    by_logit = member.parts * link.by_mean(latent)
    share = link.softmax_share(latent)[0]
    softmax = share * np.exp(link.log_proba(latent)[0]) / (1.0 - link.prior_share)
    return np.asarray(share * (by_logit - (by_logit @ softmax)[:, None]))


def _by_pool(p: Array, moved: Array) -> Array:
    """What moves (m, C) of the pool's log weights do to its probabilities, (m, C)."""
    return np.asarray(p * (moved - (moved @ p)[:, None]))
