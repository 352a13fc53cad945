# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of classifiers: whether probabilities hold, what is mistaken for what, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import ClassAssessment
from lsgp.ensemble.classify import LeaveOneOutClasses, codes_of_rows
from lsgp.ensemble.view import EncodedRows, in_one_piece, training_rows
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.plotting import maps, style
from lsgp.plotting.style import Axes

#: Classes whose counts are written into the confusion matrix.
MOST_COUNTED = 12
#: Pixels of the decision map, in each direction.
RESOLUTION = 150
#: Bins of fewer predictions are not drawn.
FEWEST_IN_BIN = 5
#: Of classes, one after the other, and again from the first.
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.PURPLE, style.SKY)


def plot_reliability(
    source: LSGPClassifier | ClassAssessment | LeaveOneOutClasses,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Share of predictions that are right, by the probability that they were given.

    Points are bins of the probability of the likeliest class, their size is the number of
    predictions, and whiskers are what chance allows 95 % of calibrated ones. Points below the
    diagonal are too sure.

    Parameters
    ----------
    source : fitted LSGPClassifier, ClassAssessment or LeaveOneOutClasses
        A model is judged on X and y, or, without them, on up to 5,000 training points that are
        predicted from their neighbors without themselves.
    X : array-like of shape (n, d), default=None
    y : array-like of shape (n,), default=None
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from lsgp import LSGPClassifier
    >>> from lsgp.plotting import plot_reliability
    >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> plot_reliability(model).get_xlabel()
    'probability of the predicted class'
    """
    style.require_kind(source, True, "plot_reliability", "plot_calibration")
    judged, how = style.judged(source, X, y)
    axes = style.one_axes(ax, (4.8, 4.4))
    # A bin of a few says nothing, and its whisker is the whole axis.
    used = judged.bin_counts >= min(FEWEST_IN_BIN, judged.bin_counts.max())
    counts, confidence = judged.bin_counts[used], judged.bin_confidence[used]
    accuracy = judged.bin_accuracy[used]
    style.diagonal(axes, 0.0, 1.0)
    chance = 1.96 * np.sqrt(confidence * (1.0 - confidence) / counts)
    low, high = np.maximum(confidence - chance, 0.0), np.minimum(confidence + chance, 1.0)
    axes.vlines(confidence, low, high, color=style.PALE, linewidth=5)
    axes.plot(confidence, accuracy, color=style.BLUE, linewidth=1)
    sizes = 15.0 + 150.0 * counts / counts.max()
    dots = axes.scatter(confidence, accuracy, s=sizes, color=style.BLUE, zorder=3)
    style.TIPS[dots] = [
        f"{n:,} predictions of {percent(c)}: {percent(right)} are right"
        for n, c, right in zip(counts, confidence, accuracy, strict=True)
    ]
    first = min(1.0 / max(len(judged.class_names), 1), float(confidence.min()))
    axes.set(xlim=(max(0.0, first - 0.05), 1.02), ylim=(0.0, 1.03))
    axes.set(xlabel="probability of the predicted class", ylabel="share that is right")
    error = f"calibration error {judged.calibration_error:.3f}"
    style.title(axes, f"{how.capitalize()}: {judged.n:,} points, {error}")
    return axes


def plot_confusion(
    source: LSGPClassifier | ClassAssessment | LeaveOneOutClasses,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Observed against predicted classes, as shares of each observed class.

    Parameters
    ----------
    source, X, y, ax
        As in `plot_reliability`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from lsgp import LSGPClassifier
    >>> from lsgp.plotting import plot_confusion
    >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> plot_confusion(model).get_ylabel()
    'observed'
    """
    style.require_kind(source, True, "plot_confusion", "plot_residuals")
    judged, how = style.judged(source, X, y)
    axes = style.one_axes(ax, (5.2, 4.4))
    shares = judged.confusion / np.maximum(judged.confusion.sum(axis=1, keepdims=True), 1)
    drawn = axes.imshow(shares, cmap=style.weight_colors(), vmin=0.0, vmax=1.0)
    n_classes = len(judged.class_names)
    places = np.arange(n_classes)
    axes.set_xticks(places, judged.class_names, rotation=45 if n_classes > 5 else 0)
    axes.set_yticks(places, judged.class_names)
    if n_classes <= MOST_COUNTED:
        for (i, j), number in np.ndenumerate(judged.confusion):
            color = "white" if shares[i, j] > 0.5 else style.INK
            axes.text(j, i, f"{number:,}", ha="center", va="center", color=color, fontsize=9)
    axes.set(xlabel="predicted", ylabel="observed")
    style.title(axes, f"{how.capitalize()}: error {100 * judged.error:.1f} %")
    style.color_bar(axes, drawn, label="share of the observed class")
    return axes


def plot_decision(
    model: LSGPClassifier, *, n_points: int = style.MOST_POINTS, ax: Axes | None = None
) -> Axes:
    """The likeliest class over two inputs: the paler, the less sure.

    Parameters
    ----------
    model : fitted LSGPClassifier of two inputs
    n_points : int
        Training points shown at most, drawn at random.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPClassifier
    >>> from lsgp.plotting import plot_decision
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> model = LSGPClassifier(objective=None).fit(X, X[:, 0] > X[:, 1])
    >>> plot_decision(model).get_xlabel()
    'x0'
    """
    style.require_kind(model, True, "plot_decision", "plot_map")
    style.require_inputs(model, 2, "plot_decision", "Use plot_reliability and plot_confusion.")
    axes = style.one_axes(ax, (5.6, 4.6))
    data = training_rows(model.ensemble_, n_points)
    X = in_one_piece(model.ensemble_, data.X)
    frame = maps.MapFrame((0, 1), maps.sides_of(model, X))
    proba = model.predict_proba(EncodedRows(frame.centers(RESOLUTION)))
    # From pale, where all classes are alike, to strong.
    floor = 1.0 / max(proba.shape[1], 1)
    sure = np.clip((proba.max(axis=1) - floor) / max(1.0 - floor, 1e-9), 0.0, 1.0)[:, None]
    strength = 0.15 + 0.55 * sure
    colors = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS], dtype=float)
    likeliest = colors[proba.argmax(axis=1) % len(colors)]
    pixels = (255.0 * (1.0 - strength) + likeliest * strength).astype(np.uint8)
    maps.show_image(axes, model, frame, pixels.reshape(*frame.shape(RESOLUTION), 3))
    codes, names = codes_of_rows(model.ensemble_, data.rows), model.classes_.tolist()
    look: dict[str, Any] = {"s": 12, "edgecolor": "white", "linewidth": 0.4}
    for k, name in enumerate(names):
        color = COLORS[k % len(COLORS)]
        axes.scatter(*X[codes == k].T, color=color, label=str(name), **look)
    if len(names) <= MOST_COUNTED:
        style.legend(axes, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes
