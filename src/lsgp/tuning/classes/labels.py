# SPDX-License-Identifier: BSD-3-Clause
"""How models of labels are judged: by links of leave-one-out latents, pooled by log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.inputs.transforms import TargetScaler
from lsgp.inputs.transforms.exact_sums import exact_mean, rounded, sums_of_shares
from lsgp.method.contract import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
)
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.link import N_SHAPE, Latent, Link, latent_of, link_loss, log_pool
from lsgp.tuning.calibration import ScaleAndShape
from lsgp.tuning.classes.linear import LinearCandidate
from lsgp.tuning.classes.plan import (
    BIAS_BOUND,
    BIAS_PRIOR,
    LINK_BOUNDS,
    LINK_CENTER,
    LINK_ITERATIONS,
    LINK_SPREAD,
    LINK_START_PRIOR_SHARE,
    least_prior_share,
)
from lsgp.tuning.comparison import Choice, Comparison, Judgement
from lsgp.tuning.leave_one_out import Sample
from lsgp.tuning.plan import BAD_LOSS
from lsgp.tuning.result import Candidate
from lsgp.tuning.weights import Toll

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all rows, and how their one-hot columns were scaled."""

    codes: NDArray[np.int64]  # (n,) from 0 to C - 1
    weight: Array  # (n,) with mean 1
    prior: Array  # (C,) shares of the classes, none of them 0
    scaler: TargetScaler  # of the columns that are solved for

    @classmethod
    def of(
        cls, codes: NDArray[np.int64], weight: Array | None, n_classes: int, scaler: TargetScaler
    ) -> Labels:
        if weight is None:
            counts = np.bincount(codes, minlength=n_classes).astype(float)
            return cls(codes, np.ones(len(codes)), prior_of(counts), scaler)
        largest = float(weight.max())
        relative = weight / exact_mean(weight, largest)
        # Exact sums, so that rows in parts give the same bits.
        top = float(relative.max())
        counts = np.array(
            [rounded(sums_of_shares(relative[codes == k], top))[0] for k in range(n_classes)]
        )
        return cls(codes, relative, prior_of(top * counts), scaler)

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    def latent(self, predicted: PredictiveDistribution) -> Latent:
        """Latent shares from a distribution of scaled columns (q, t)."""
        mean = self.scaler.inverse_mean(predicted.mean)
        return latent_of(mean, self.scaler.inverse_scale(predicted.scale), self.n_classes)


def prior_of(counts: Array) -> Array:
    """Shares of classes of which there are so many rows (C,), by their weights; none is 0."""
    shares = counts + 1.0
    return np.asarray(shares / shares.sum())


def one_hot(codes: NDArray[np.integer], n_classes: int) -> Array:
    """Columns (n, t) to solve for: one for each class, or of two classes the second."""
    columns = np.arange(n_classes) if n_classes != 2 else np.array([1])
    return (codes[:, None] == columns).astype(float)


def codes_of(columns: Array, n_classes: int) -> NDArray[np.int64]:
    """Which class each row has, (n,), of its columns (n, t) as `one_hot` makes them."""
    if n_classes == 2:
        return (columns[:, 0] > 0.5).astype(np.int64)
    return np.argmax(columns, axis=1)


def default_link(prior: Array) -> Link:
    """Where the fit of a link starts, and where it stays if there is nothing to fit it to."""
    return Link.of_vector(_start(len(prior)), prior)


def fit_link(latent: Latent, codes: NDArray[np.integer], weight: Array, prior: Array) -> Link:
    """[C1] to [C3] by the log loss of labels whose latents were predicted without them."""
    n = len(codes)
    share = weight / weight.sum()
    center, spread = np.array(LINK_CENTER), np.array(LINK_SPREAD)

    def function(vector: Array) -> tuple[float, Array]:
        value, gradient = link_loss(vector, latent, codes, share, prior)
        z = (vector[: len(center)] - center) / spread
        bias = vector[N_SHAPE:]
        gradient[: len(center)] += z / spread / n
        gradient[N_SHAPE:] += 2.0 * BIAS_PRIOR * bias / n
        return value + (0.5 * float(z @ z) + BIAS_PRIOR * float(bias @ bias)) / n, gradient

    found = minimize(
        function,
        _start(len(prior)),
        jac=True,
        method="L-BFGS-B",
        bounds=[*LINK_BOUNDS, *[(-BIAS_BOUND, BIAS_BOUND)] * len(prior)],
        options={"maxiter": LINK_ITERATIONS},
    )
    link = Link.of_vector(found.x, prior)
    # Not while it is fitted: what is left would be the surer, to make up for it.
    return replace(link, prior_share=max(link.prior_share, least_prior_share(n)))


def _start(n_classes: int) -> Array:
    return np.concatenate([LINK_CENTER, [LINK_START_PRIOR_SHARE], np.zeros(n_classes)])


@dataclass(frozen=True, eq=False)
class LabelComparison(Comparison):
    """Training points whose labels candidates are compared by."""

    labels: Labels

    @property
    def codes(self) -> NDArray[np.int64]:
        return self.labels.codes[self.rows]

    @property
    def shares(self) -> Array:
        """Weights of the points, which sum to 1."""
        weight = self.labels.weight[self.rows]
        return weight / weight.sum()

    def judge(
        self,
        model: LocalModel,
        predictions: Predictions,
        calibrates_scale: bool,
        local: LocalProblem | None = None,
        sample: Sample | None = None,
    ) -> Judgement:
        """Fit the link to the latents of leave-one-out predictions, and score it."""
        failed = bool((predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any())
        if calibrates_scale and not failed:
            model, predictions = self.calibrated(model, predictions)
        predicted = distribution_of(predictions, 0.0)
        latent = self.labels.latent(predicted)
        failed = failed or not np.isfinite(latent.mean).all()
        failed = failed or not np.isfinite(latent.variance).all()
        if failed:
            return Judgement(model, predicted, BAD_LOSS, 0.0, default_link(self.labels.prior))
        link = fit_link(latent, self.codes, self.labels.weight[self.rows], self.labels.prior)
        losses = -link.log_proba(latent)[np.arange(len(self.rows)), self.codes]
        loss = float(self.shares @ losses)
        error = float(np.sqrt((self.shares**2) @ (losses - loss) ** 2))
        return Judgement(model, predicted, loss, error, link)

    def choose(
        self,
        candidates: Sequence[Candidate],
        n_models: int,
        fixed: Array,
        share: float,
        linear: Sequence[LinearCandidate] = (),
        toll: Toll | None = None,
    ) -> Choice:
        """Pool probabilities of the points [C4] by greedy picks, the first of them a GP."""
        log_p = []
        for candidate in candidates:
            assert candidate.link is not None, "candidates of labels have a link"
            log_p.append(candidate.link.log_proba(self.labels.latent(candidate.predicted)))
        log_p += [candidate.log_proba for candidate in linear]
        own = np.zeros(len(log_p))
        if toll is not None:
            own[: len(candidates)] = toll.costs * min(map(self._log_loss, log_p[: len(candidates)]))
        weights = (1.0 - share) * self._pick(log_p, n_models, len(candidates), own)
        weights[: len(candidates)] += share * fixed
        used = np.flatnonzero(weights).tolist()
        loss = self._log_loss(log_pool([log_p[k] for k in used], weights[used]))
        return Choice(weights, loss, ScaleAndShape())

    def _pick(self, log_p: Sequence[Array], n_picks: int, n_first: int, costs: Array) -> Array:
        """Shares of greedy picks with repetition, each the best for the log loss of the pool."""
        counts, total = np.zeros(len(log_p)), np.zeros_like(log_p[0])
        for pick in range(n_picks):
            tried = log_p[:n_first] if pick == 0 else log_p
            losses = [
                self._log_loss(log_pool([total + p], [1.0 / (pick + 1)]))
                + (costs[k] if counts[k] == 0 else 0.0)
                for k, p in enumerate(tried)
            ]
            best = int(np.argmin(losses))
            counts[best] += 1.0
            total = total + log_p[best]
        return counts / n_picks

    def _log_loss(self, log_p: Array) -> float:
        return float(-self.shares @ log_p[np.arange(len(self.rows)), self.codes])
