# SPDX-License-Identifier: BSD-3-Clause
"""Labels of any type, checked, and as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from lsgp.compute.threads import parse_memory_budget
from lsgp.inputs.transforms import TargetScaler
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.link import ClassRows, Latent, latent_of

Array = NDArray[np.float64]

#: Labels that an error names.
N_NAMED = 5


def require_room(n: int, n_classes: int, memory_budget: int | str) -> None:
    """One-hot columns are held in memory: refuse what does not fit before making them."""
    budget, needed = parse_memory_budget(memory_budget), 8 * n * n_classes
    if n_classes > 2 and needed > budget:
        raise ValueError(
            f"y has {n_classes} classes: one column for each of {n} rows takes {needed} bytes, "
            f"more than memory_budget={budget}. Increase memory_budget, or merge rare classes."
        )


def weigh(labels: NDArray[Any], class_weight: Any, sample_weight: ArrayLike | None) -> Array | None:
    """Weights of rows, by their class too; None if all are alike."""
    given = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if class_weight is None:
        return given
    by_class: Array = compute_sample_weight(class_weight, labels)
    return by_class if given is None else by_class * given


def check_labels(y: NDArray[Any]) -> NDArray[Any]:
    """One label per row (n,), none of them missing."""
    if y.dtype == object:
        n_missing = sum(value is None or bool(value != value) for value in y.tolist())
        if n_missing:
            raise ValueError(
                f"y has {n_missing} labels that are missing (None or NaN). Remove those rows."
            )
        _unique(y)
    check_classification_targets(y)
    return y


def classes_of(y: NDArray[Any], given: ArrayLike | None = None) -> NDArray[Any]:
    """The labels, sorted; given labels may not have occurred yet."""
    found = _unique(y)
    if given is None:
        return found
    classes = _unique(check_labels(np.asarray(given)))
    encode_labels(found, classes, "classes")
    return classes


def _unique(labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"The labels are of different types ({', '.join(kinds)}), which have no order. Make "
            "them all of one type."
        ) from None


def encode_labels(y: NDArray[Any], classes: NDArray[Any], known: str) -> NDArray[np.int64]:
    """The place of each label among the classes; ``known`` says in errors what those are."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    values = y.tolist()
    unknown = list(dict.fromkeys(value for value in values if value not in places))
    if unknown:
        named = ", ".join(map(repr, unknown[:N_NAMED]))
        more = f" and {len(unknown) - N_NAMED} more" if len(unknown) > N_NAMED else ""
        raise ValueError(
            f"y has the labels {named}{more}, which are not among the {len(classes)} {known}. Fit "
            "again with all labels, or name them with classes= at the first partial_fit."
        )
    return np.array([places[value] for value in values], dtype=np.int64)


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
        relative = np.ones(len(codes)) if weight is None else weight / weight.mean()
        counts = np.bincount(codes, relative, n_classes).astype(float)
        return cls(codes, relative, prior_of(counts), scaler)

    def take(self, rows: NDArray[np.integer]) -> Labels:
        return replace(self, codes=self.codes[rows], weight=self.weight[rows])

    @property
    def known(self) -> ClassRows:
        return ClassRows(self.codes, self.weight, self.prior)

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    def losses(self, log_p: Array, rows: NDArray[np.integer]) -> Array:
        """Log loss (k,) of each of some rows, from their log probabilities (k, C)."""
        return np.asarray(-log_p[np.arange(len(rows)), self.codes[rows]])

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
