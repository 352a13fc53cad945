# SPDX-License-Identifier: BSD-3-Clause
"""What a model file may hold: the rules of every kind of record, in one table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lsgp.backends.grow import Nodes
from lsgp.ensemble.ensemble import Classification, Ensemble, Georeference
from lsgp.inputs import sklearn_kernels
from lsgp.inputs.encoding.categories import Statistics
from lsgp.inputs.encoding.columns import KINDS as COLUMN_KINDS
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.encodings import (
    PERIODS,
    Date,
    Encoding,
    LeftOut,
    Number,
    OneHot,
    Order,
    Scheme,
    TimeOfDay,
)
from lsgp.inputs.encoding.level_effects import MOST_CUBED, Adjustment
from lsgp.inputs.encoding.missing import Imputation
from lsgp.inputs.rows import Groups
from lsgp.inputs.transforms import KINDS, InputTransform, Rotation, Sphere, TargetScaler
from lsgp.method.combination import Shape
from lsgp.method.contract import LOCALIZER_METRICS, LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.kernels import CHOSEN_FROM, KERNELS, SumKernel
from lsgp.method.link import LinearLogits, Link
from lsgp.method.localizers import LOCALIZERS
from lsgp.search.index import Codes, NeighborIndex
from lsgp.solvers.boosted import UNSEEN, BoostedTrees
from lsgp.solvers.laplace import Covariance, LaplaceGP
from lsgp.storage.rules import ABOVE_MINUS_ONE, ABOVE_ZERO, BELOW_ONE, Rule, Schema, require
from lsgp.tuning.class_members import LaplaceMember, LinearMember, TreesMember
from lsgp.tuning.result import Candidate, TuningResult

REAL = Rule(-math.inf, math.inf)
SHARE = Rule(0.0, 1.0)
WITHIN_SHARE = Rule(ABOVE_ZERO, BELOW_ONE)


def finite(shape: str | None = None) -> Rule:
    return Rule(shape=shape)


def positive(shape: str | None = None) -> Rule:
    return Rule(ABOVE_ZERO, shape=shape)


def not_negative(shape: str | None = None) -> Rule:
    return Rule(0.0, shape=shape)


def shaped(**shapes: str) -> dict[str, Rule]:
    """Finite numbers of these shapes."""
    return {name: Rule(shape=shape) for name, shape in shapes.items()}


def unread(*names: str) -> dict[str, Rule]:
    """Fields of which only type and shape are looked at."""
    return {name: Rule(is_read=False) for name in names}


# -- what one rule cannot say --------------------------------------------------------------------


def _check_local_model(model: LocalModel) -> None:
    kernel = model.kernel
    if isinstance(kernel, SumKernel):
        is_known = [name in CHOSEN_FROM for name in kernel.names] == [True, True]
        require(is_known, f"unknown kernels {kernel.names!r} of a sum")
        d = len(model.lengthscale)
        require(len(kernel.ratios) == d, f"a sum has {len(kernel.ratios)} ratios for {d} inputs")
        for number in (kernel.constant, *kernel.ratios):
            Rule(ABOVE_ZERO).check("a number of a sum", number, {})
    else:
        is_object = sklearn_kernels.is_kernel(kernel)
        require(is_object or kernel in KERNELS, f"unknown kernel {kernel!r}")
    has_formula = model.correlation.formula is not None
    require(model.reach == 1 or has_formula, f"reach is {model.reach!r} of another kernel")


def _check_problem(problem: LocalProblem) -> None:
    X, y, noise, _ = problem
    require(y.dtype == X.dtype == noise.dtype, "X, y and noise differ in precision")
    require(X.dtype in (np.float64, np.float32), f"X is of {X.dtype}")
    require(len(X) >= 1 and y.shape[1] >= 1, f"{len(X)} rows of {y.shape[1]} targets")


def _check_transform(transform: InputTransform) -> None:
    offsets, n_knots = transform.knot_offsets, transform.knots.size
    sizes = np.diff(offsets)
    require(offsets[0] == 0 and offsets[-1] == n_knots and (sizes >= 0).all(), "knots overlap")
    for kind, scale, size in zip(transform.kinds, transform.scale, sizes, strict=True):
        require(kind != "half-rank" or np.isinf(scale) or size > 0, "an input has no knots")
    projection = transform.projection
    if projection is not None:
        pair, d = projection.pair, len(transform.kinds) - projection.n_added
        require(pair[0] != pair[1] and max(pair) < d, f"inputs {pair} are projected, of {d}")


def _check_trees(trees: BoostedTrees) -> None:
    n_folds = len(trees.baseline)
    require(len(trees.nodes.ends) == trees.baseline.size, f"trees of {n_folds} folds")
    require(trees.folds.max() < n_folds, f"folds beyond {n_folds}")


def _fit_laplace(**known: Any) -> LaplaceGP:
    codes, n_classes = known["codes"], len(known["prior"])
    require(len(codes) > 0 and codes.max() < n_classes, "a code is of no class")
    return LaplaceGP.fit(**known)


def _check_statistics(scheme: Statistics) -> None:
    targets, t = scheme.targets, len(scheme.variance)
    require(targets and max(targets) < t, f"{t} targets have statistics of {targets}")


def _check_encoder(encoder: Encoder) -> None:
    numbers, imputation = len(encoder.numbers()), encoder.imputation
    has_all = imputation is not None and len(imputation.center) == numbers
    require(has_all or (imputation is None and numbers == 0), "missing numbers are not filled in")
    if encoder.adjustment is not None:
        e, (p, _) = len(encoder.plain()), encoder.adjustment.coefficients.shape
        require(len(encoder.adjustment.center) == e, f"an adjustment is not of {e} inputs")
        require(p == 1 + (e if e > MOST_CUBED else 3 * e), f"an adjustment has {p} coefficients")


def check_ensemble(ensemble: Ensemble) -> None:
    """Refuse what does not belong to the models: of other rows, inputs, targets or classes."""
    t, d = ensemble.n_targets, ensemble.n_inputs
    shape = ensemble.target_shape
    require(shape == (t,) or (shape, t) == ((), 1), f"{t} targets of shape {shape}")
    for what, names, n in (
        ("inputs", ensemble.input_names, ensemble.n_columns),
        ("targets", ensemble.target_names, t),
    ):
        require(names is None or len(names) == n, f"{names!r} for {n} {what}")
    own, known = ensemble.classification, ensemble.georeference
    others = () if own is None else own.others
    projected = (*ensemble.models, *(one for one in others if not isinstance(one, TreesMember)))
    for fitted in projected:
        is_same = fitted.transform.projection == ensemble.projection
        require(is_same, "models differ in their projection")
    if ensemble.encoder is not None:
        n = len(ensemble.encoder.inputs)
        require(n == d, f"columns become {n} inputs, and models have {d}")
    if known is not None:
        place = max(known.x, known.y)
        require(place < ensemble.n_columns, f"{place} is a coordinate of {ensemble.n_columns}")
    trees = [] if ensemble.boosted is None else [ensemble.boosted]
    if own is not None:
        require(len(own.links) == len(ensemble.models), f"{len(own.links)} links for models")
        n_columns = 1 if own.n_classes == 2 else own.n_classes
        require(n_columns == t, f"{t} columns for {own.n_classes} classes")
        trees += [one.trees for one in own.trees]
    for one in trees:
        one.nodes.sums(np.zeros((1, d)))  # the core refuses what would leave the arrays


# -- the table -----------------------------------------------------------------------------------

#: The classes that stand for their base.
PROTOCOLS: dict[Any, tuple[type, ...]] = {
    Scheme: (LeftOut, Number, Date, TimeOfDay, OneHot, Order, Statistics),
}

#: Fields of schemes of levels.
OF_LEVELS = {"levels": Rule(shape="k", is_long=True), "variance": not_negative("t")}

SCHEMAS: dict[type, Schema] = {
    # Hyperparameters and rows of a model.
    LocalModel: Schema(
        {
            "localizer": Rule(one_of=LOCALIZERS),
            "lengthscale": positive("d"),
            "signal_variance": not_negative(),
            "noise_variance": not_negative(),
            "constant_variance": Rule(0.0, math.inf),  # infinite: an unknown trend
            "slope_variance": Rule(0.0, math.inf),
            "localizer_decay": not_negative(),
            "scale_dof": Rule(ABOVE_ZERO, math.inf),
            "bandwidth": positive(),
            "localizer_metric": Rule(one_of=LOCALIZER_METRICS),
            "noise_levels": not_negative("t"),
            "reach": Rule(1.0),
        },
        _check_local_model,
    ),
    LocalProblem: Schema(
        {
            "X": Rule(shape="n d", is_read=False),
            "y": Rule(shape="n t", is_read=False),
            "noise": Rule(shape="n", is_read=False),
        },
        _check_problem,
    ),
    InputTransform: Schema(
        {
            "kinds": Rule(one_of=KINDS, shape="d"),
            "scale": Rule(ABOVE_ZERO, math.inf, shape="d"),
            **shaped(center="d", power="d", knots="k", knot_values="k", knot_offsets="d+1"),
        },
        _check_transform,
    ),
    Rotation: Schema(
        {"first": not_negative(), "second": not_negative(), "ratio": Rule(ABOVE_ZERO, 1.0)}
    ),
    Sphere: Schema({"longitude": not_negative(), "latitude": not_negative()}),
    # Trees of rows, whose values `trees` checks beside the rows.
    NeighborIndex: Schema(
        {
            **unread("leaves", "boxes"),
            "unit": positive("d"),
            "reach": Rule(ABOVE_ZERO, 1.0),
            "recall": Rule(ABOVE_ZERO, 1.0),
        }
    ),
    Codes: Schema(unread(*Codes._fields)),
    # What tuning tried.
    PredictiveDistribution: Schema(unread("mean", "scale", "dof"), omitted=("is_jittered",)),
    Candidate: Schema({"loss": REAL, "standard_error": REAL, "seconds": REAL}),
    TuningResult: Schema(
        {
            **shaped(candidates="k", weights="k"),
            **{"loss": REAL, "seconds": REAL, "scale_factor": REAL},
        }
    ),
    # What an ensemble has beside its models.
    Ensemble: Schema(
        {"scale_factor": positive(), "mean_noise_variance": positive()},
        check_ensemble,
        omitted=("models",),
    ),
    TargetScaler: Schema({"mean": finite("t"), "std": positive("t")}),
    Shape: Schema(
        {"tail": Rule(-1.0, 1.0), "contrast": Rule(ABOVE_MINUS_ONE)},  # below, scales are reversed
        lambda own: require(own.log_smallest <= own.log_largest, "the scales are no range"),
    ),
    Groups: Schema(
        {"numbers": Rule(-1, shape="n"), "labels": Rule(is_long=True)},
        lambda own: require(own.numbers.max() < len(own.labels), "a group has no label"),
    ),
    Georeference: Schema(
        {"x": not_negative(), "y": not_negative(), "units": Rule(shape="t")},
        lambda own: require(own.x != own.y, f"both coordinates are column {own.x}"),
    ),
    Nodes: Schema(
        shaped(
            **dict.fromkeys(("feature", "threshold", "left", "right", "value"), "k"),
            roots="m",
            ends="f",
        )
    ),
    BoostedTrees: Schema(
        {
            **shaped(baseline="f t", held_out="n t"),
            "share": SHARE,
            "folds": Rule(UNSEEN, shape="n"),
        },
        _check_trees,
    ),
    # Labels.
    Classification: Schema({"classes": Rule(-math.inf, math.inf, "c")}),
    Link: Schema(
        {
            **dict.fromkeys(("slope", "base_width", "latent_width"), not_negative()),
            "prior_share": WITHIN_SHARE,
            "bias": finite("c"),
            "prior": positive("c"),
        }
    ),
    LinearLogits: Schema(
        {
            **shaped(coefficients="c d", intercept="c"),
            "prior_share": WITHIN_SHARE,
            "prior": positive("c"),
        }
    ),
    LinearMember: Schema({"ridge": not_negative(), "weight": not_negative()}),
    Covariance: Schema(
        {
            "kernel": Rule(one_of=KERNELS),
            "lengthscale": positive("d"),
            **dict.fromkeys(("slope_variance", "amplitude", "constant_variance"), not_negative()),
        }
    ),
    LaplaceGP: Schema(
        {
            "Z": finite("m d"),
            "codes": Rule(0, shape="m"),
            "weight": not_negative("m"),
            "prior": positive("c"),
            "prior_share": WITHIN_SHARE,
        },
        omitted=("modes",),  # they follow from the rest, and are large
        make=_fit_laplace,
    ),
    LaplaceMember: Schema({"center": finite("d"), "weight": not_negative()}),
    TreesMember: Schema({"weight": not_negative()}),
    # Columns.
    Encoding: Schema(
        {"kind": Rule(one_of=COLUMN_KINDS), "n_levels": not_negative(), "share_missing": SHARE}
    ),
    **{kind: Schema() for kind in (LeftOut, Number, TimeOfDay)},
    **{kind: Schema(OF_LEVELS) for kind in (OneHot, Order)},
    Date: Schema({"cycles": Rule(one_of=PERIODS)}),
    Statistics: Schema(
        {
            **OF_LEVELS,
            "counts": not_negative("k"),
            **shaped(sums="k s", means="s"),
            "shrinkage": positive("s"),
            "targets": Rule(0, shape="s"),
            "usual_uncertainty": SHARE,
        },
        _check_statistics,
    ),
    Encoder: Schema(check=_check_encoder),
    Imputation: Schema({**shaped(center="p", coefficients="2p p"), "scale": positive("p")}),
    Adjustment: Schema({**shaped(center="p", coefficients="q t"), "scale": positive("p")}),
}
