# SPDX-License-Identifier: BSD-3-Clause
"""The result of tuning for users: models that were tried, their scores and weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.method.combination import UNCHANGED_SHAPE, Shape
from lsgp.method.contract import LocalModel
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.link import Link

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A tuned model and its leave-one-out predictions of the compared points.

    Attributes
    ----------
    input_transform : str, tuple or None
    n_neighbors : int or None
    model : LocalModel
    predicted : PredictiveDistribution
        Predictions of the compared points, in scaled units; for labels, of the latent function.
    loss : float
        Mean of the objective over the compared points.
    standard_error : float
        Standard error of the loss.
    seconds : float
    link : Link or None
        For labels, the link from the latent function to probabilities.
    is_integrated : bool
        Whether it is a member of an average over the posterior of the hyperparameters. Such members
        have a common weight, which does not depend on the loss of each.
    """

    input_transform: str | Kinds | None
    n_neighbors: int | None
    model: LocalModel
    predicted: PredictiveDistribution
    loss: float
    standard_error: float
    seconds: float
    link: Link | None = None
    is_integrated: bool = False

    def __repr__(self) -> str:
        return f"Candidate({self.describe()}: loss {self.loss:.4g} ± {self.standard_error:.2g})"

    @property
    def scale(self) -> str:
        return "local" if self.model.is_local_scale else "global"

    def describe(self) -> str:
        size = "" if self.n_neighbors is None else f", {self.n_neighbors} neighbors"
        if self.model.is_coarse:
            size = f", {self.n_neighbors} units of reach {self.model.reach:.3g}"
        is_mixed = isinstance(self.input_transform, tuple)
        kind = "a transform per input" if is_mixed else self.input_transform
        return f"{self.model.kernel}, {kind}, {self.scale} scale{size}"


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The candidates of a tuning run; those with a weight above 0 are combined.

    Attributes
    ----------
    objective : str
        Name of the loss that was minimized.
    candidates : tuple of Candidate
    weights : array of shape (n_candidates,)
    loss : float
        Leave-one-out loss of the combination, in the scaled units of the targets.
    scale_factor : float
        Factor on the scale of the combination, which calibrates its intervals.
    shape : Shape
        Calibration of the tails of the combination, and of its large and small scales.
    n_compared : int
        Number of training points whose leave-one-out predictions were compared.
    seconds : float
    is_complete : bool
        False if tuning ran out of time or was interrupted.
    at_bounds : dict
        Number of hyperparameters of the combined models that ended at a bound, by name.
    boosted_share : float
        Share of boosted trees in the locations of predictions; 0 if they do not help.
    """

    objective: str
    candidates: tuple[Candidate, ...]
    weights: Array
    loss: float
    scale_factor: float
    n_compared: int
    seconds: float
    is_complete: bool
    at_bounds: dict[str, int] = field(default_factory=dict)
    shape: Shape = UNCHANGED_SHAPE
    boosted_share: float = 0.0

    def __repr__(self) -> str:
        stopped = "" if self.is_complete else ", stopped early"
        return (
            f"TuningResult({self.objective} {self.loss:.4g} of {self.n_compared:,} points, "
            f"{np.count_nonzero(self.weights)} of {len(self.candidates)} candidates combined, "
            f"{self.seconds:.1f} s{stopped})"
        )

    @property
    def chosen(self) -> tuple[tuple[Candidate, float], ...]:
        """The candidates that are combined, with their weights, heaviest first."""
        order = np.argsort(-self.weights, kind="stable")
        return tuple((self.candidates[k], float(self.weights[k])) for k in order if self.weights[k])

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary per candidate, best first."""
        order = np.argsort([c.loss for c in self.candidates], kind="stable")
        return [self._row(self.candidates[k], float(self.weights[k])) for k in order]

    def to_frame(self) -> Any:
        """The candidates as a pandas data frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.to_rows())

    @staticmethod
    def _row(candidate: Candidate, weight: float) -> dict[str, Any]:
        return {
            "kernel": str(candidate.model.kernel),
            "input_transform": candidate.input_transform,
            "scale": candidate.scale,
            "n_neighbors": candidate.n_neighbors,
            "reach": candidate.model.reach,
            "loss": candidate.loss,
            "standard_error": candidate.standard_error,
            "weight": weight,
            "seconds": candidate.seconds,
        }
