# SPDX-License-Identifier: BSD-3-Clause
"""Labels of any type, checked, and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

#: Labels that an error names.
N_NAMED = 5


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
    """The labels, sorted; those that are given may not have occurred yet."""
    found = _unique(y)
    if given is None:
        return found
    classes = _unique(check_labels(np.asarray(given)))
    encode_labels(found, classes, "classes")
    return classes


def encode_labels(y: NDArray[Any], classes: NDArray[Any], known: str) -> NDArray[np.int64]:
    """The place of each label among the classes; ``known`` says in errors what those are."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    values = y.tolist()
    unknown = dict.fromkeys(value for value in values if value not in places)
    if unknown:
        named = ", ".join(repr(value) for value in list(unknown)[:N_NAMED])
        more = f" and {len(unknown) - N_NAMED} more" if len(unknown) > N_NAMED else ""
        raise ValueError(
            f"y has the labels {named}{more}, which are not among the {len(classes)} {known}. Fit "
            "again with all labels, or name them with classes= at the first partial_fit."
        )
    return np.array([places[value] for value in values], dtype=np.int64)


def _unique(labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"The labels are of different types ({', '.join(kinds)}), which have no order. Make "
            "them all of one type."
        ) from None
