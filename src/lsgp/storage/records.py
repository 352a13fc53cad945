# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models as records (JSON) and arrays of a model file, and back, checked.

The checksums catch damage. The checks here are for files that were made otherwise: no array may
make the native core read outside of its memory, nothing may fail later and less clearly.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, is_here
from lsgp.compute.warn import warn_user
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs import sklearn_kernels
from lsgp.inputs.rows import Groups
from lsgp.inputs.transforms import KINDS, InputTransform, Projection
from lsgp.method.contract import LOCALIZER_METRICS, LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.kernels import CHOSEN_FROM, KERNELS
from lsgp.method.localizers import LOCALIZERS
from lsgp.method.sum_kernel import SumKernel
from lsgp.solvers.choose import choose_solver
from lsgp.storage.checks import InvalidRecord as InvalidRecord
from lsgp.storage.checks import require as require
from lsgp.storage.searches import index_arrays, read_index, read_search, search_record
from lsgp.storage.values import decode, encode
from lsgp.tuning.result import Candidate, TuningResult

Record = dict[str, Any]
Array = NDArray[Any]


class ArrayStore:
    """Arrays by name; one that several models share is kept once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def add(self, name: str, array: Array) -> str:
        """The name under which the array, or one of the same bits, is kept."""
        for other, kept in self.arrays.items():
            if array is kept or _same_bits(array, kept):
                return other
        self.arrays[name] = array
        return name


def _same_bits(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.size == 0:
        return False
    flat_a, flat_b = (np.asarray(x, order="C").reshape(-1).view(np.uint8) for x in (a, b))
    # The first bytes tell nearly all pairs apart, before whole arrays are compared.
    return np.array_equal(flat_a[:64], flat_b[:64]) and np.array_equal(flat_a, flat_b)


# -- the hyperparameters -----------------------------------------------------------------------


def local_model_record(model: LocalModel) -> Record:
    return {f.name: encode(getattr(model, f.name), f.name) for f in fields(model)}


def read_local_model(record: Record, n_inputs: int) -> LocalModel:
    model = LocalModel(**{name: decode(value) for name, value in record.items()})
    _require_kernel(model.kernel, n_inputs)
    require(model.localizer in LOCALIZERS, f"unknown localizer {model.localizer!r}")
    scales: Any = model.lengthscale
    require(isinstance(scales, np.ndarray) and scales.dtype.kind == "f", "lengthscale is no array")
    require(scales.shape == (n_inputs,), f"lengthscale has shape {scales.shape}")
    require(np.isfinite(scales).all() and (scales > 0).all(), "a lengthscale is not positive")
    for name in ("signal_variance", "noise_variance"):
        require_number(name, getattr(model, name))
    for name in ("constant_variance", "slope_variance"):
        if getattr(model, name) != math.inf:  # an unknown trend
            require_number(name, getattr(model, name))
    require_number("localizer_decay", model.localizer_decay)
    require_real("scale_dof", model.scale_dof)
    require(model.scale_dof > 0, "scale_dof is not positive")
    if model.bandwidth is not None:
        require_number("bandwidth", model.bandwidth)
        require(model.bandwidth > 0, "bandwidth is not positive")
    require(isinstance(model.normalize, bool), "normalize is neither true nor false")
    if model.noise_levels is not None:
        require(isinstance(model.noise_levels, tuple), "noise_levels is no tuple")
        for level in model.noise_levels:
            require_number("noise_levels", level)
    require_number("reach", model.reach)
    is_form = model.reach == 1 or model.correlation.formula is not None
    require(model.reach >= 1 and is_form, f"reach is {model.reach!r}")
    require(isinstance(model.is_single, bool), f"is_single is {model.is_single!r}")
    metric = model.localizer_metric
    require(metric in LOCALIZER_METRICS, f"unknown localizer_metric {metric!r}")
    return model


def _require_kernel(kernel: object, n_inputs: int) -> None:
    if isinstance(kernel, SumKernel):
        is_known = [name in CHOSEN_FROM for name in kernel.names] == [True, True]
        require(is_known, f"unknown kernels {kernel.names!r} of a sum")
        n = len(kernel.ratios)
        require(n == n_inputs, f"a sum has {n} ratios")
        for number in (kernel.constant, *kernel.ratios):
            require_number("a number of a sum", number)
            require(number > 0, "a number of a sum is not positive")
        return
    is_object = sklearn_kernels.is_kernel(kernel)
    require(is_object or kernel in KERNELS, f"unknown kernel {kernel!r}")


def require_real(name: str, value: object) -> float:
    """The value; refuse what is no number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        raise InvalidRecord(f"{name} is {value!r}")
    return value


def require_number(name: str, value: object) -> float:
    """The value; refuse what is no number, negative or infinite."""
    number = require_real(name, value)
    require(0 <= number < math.inf, f"{name} is {value!r}")
    return number


def require_finite(name: str, values: Array) -> None:
    """Refuse an array with NaN or infinite values."""
    extremes = [np.min(values, initial=0.0), np.max(values, initial=0.0)]
    require(np.isfinite(extremes).all(), f"{name} has values that are not finite")


# -- fitted models -----------------------------------------------------------------------------


def fitted_model_record(fitted: FittedModel, prefix: str, store: ArrayStore) -> Record:
    """A record that names the model's arrays, which are put in the store."""
    index = fitted.index.compact()  # as live updates have left it, it may be in parts
    n_neighbors = fitted.n_neighbors
    if n_neighbors is not None:
        n_neighbors = min(n_neighbors, index.n)
    arrays = {
        **{name: getattr(fitted.problem, name) for name in ("X", "y", "noise")},
        **index_arrays(index),
        **fitted.transform.to_arrays(),
    }
    return {
        **search_record(index),
        "arrays": {name: store.add(prefix + name, array) for name, array in arrays.items()},
        "input_transform": list(fitted.transform.kinds),
        "model": local_model_record(fitted.model),
        "n_neighbors": encode(n_neighbors, "n_neighbors"),
        "backend": fitted.solver.backend.name,
        "weight": encode(fitted.weight, "weight"),
        "is_integrated": fitted.is_integrated,
    }


def known_backend(name: str) -> str:
    """The backend that a file asks for; "auto" where there is no such backend here."""
    if name == "auto" or is_here(name):
        return name
    warn_user(
        f"The model was saved on the backend {name!r}, which is not here: it runs on another one.",
    )
    return "auto"


def read_fitted_model(
    record: Record,
    arrays: dict[str, Array],
    n_inputs: int,
    backend: str,
    check_values: bool,
    projection: Projection | None = None,
) -> FittedModel:
    """A model of so many columns, of which a projection may have made some.

    ``check_values`` reads all of the arrays, once: every row must be a number, and be found.
    """
    own = {name: arrays[stored] for name, stored in record["arrays"].items()}
    problem = _read_problem(record, own, n_inputs)
    if check_values:
        _require_values(problem)
    n = len(problem.X)
    n_neighbors = decode(record["n_neighbors"])
    if problem.model.bandwidth is None:
        is_size = type(n_neighbors) is int and 1 <= n_neighbors <= n
        require(is_size, f"n_neighbors is {n_neighbors!r} for {n} rows")
    else:
        require(n_neighbors is None, "n_neighbors is given beside a bandwidth")
    weight = decode(record["weight"])
    require_number("weight", weight)
    solver = choose_solver(
        problem,
        read_search(record, own, read_index(own, problem.X, check_values)),
        n_neighbors,
        choose_backend(backend, problem.model),
    )
    transform = read_transform(record["input_transform"], own, n_inputs, projection)
    return FittedModel.build(transform, solver, weight, _read_flag(record, "is_integrated"))


def _read_flag(record: Record, name: str) -> bool:
    value = record[name]
    require(isinstance(value, bool), f"{name} is {value!r}")
    return bool(value)


def _read_problem(record: Record, arrays: dict[str, Array], n_inputs: int) -> LocalProblem:
    X, y, noise = (arrays[name] for name in ("X", "y", "noise"))
    require(X.dtype in (np.float64, np.float32), f"X is of {X.dtype}")
    require(X.ndim == 2 and X.shape[0] >= 1 and X.shape[1] == n_inputs, f"X has shape {X.shape}")
    require(y.dtype == X.dtype == noise.dtype, "X, y and noise differ in precision")
    require(y.ndim == 2 and len(y) == len(X) and y.shape[1] >= 1, f"y has shape {y.shape}")
    require(noise.shape == (len(X),), f"noise has shape {noise.shape}")
    model = read_local_model(record["model"], n_inputs)
    n_levels = y.shape[1] if model.noise_levels is None else len(model.noise_levels)
    require(n_levels == y.shape[1], f"noise_levels of {n_levels} targets")
    return LocalProblem(X, y, noise, model)


def _require_values(problem: LocalProblem) -> None:
    require_finite("X", problem.X)
    require_finite("y", problem.y)
    # Infinite where a sample weight was next to nothing, in single precision.
    require(problem.noise.min() >= 0, "noise has values that are negative or NaN")


def read_transform(
    kinds: Any, arrays: dict[str, Array], n_inputs: int, projection: Projection | None = None
) -> InputTransform:
    """Of so many columns, of which some are a projection's."""
    require(isinstance(kinds, list) and len(kinds) == n_inputs, "input_transform is incomplete")
    require(all(kind in KINDS for kind in kinds), f"unknown input_transform in {kinds!r}")
    transform = InputTransform.from_arrays(kinds, arrays, projection)
    for name in ("center", "scale", "power", "knots", "knot_values"):
        require(arrays[name].dtype == np.float64, f"{name} is of {arrays[name].dtype}")
    for name in ("center", "scale", "power"):
        require(arrays[name].shape == (n_inputs,), f"{name} has shape {arrays[name].shape}")
    for name in ("center", "power", "knots", "knot_values"):
        require_finite(name, arrays[name])
    require((transform.scale > 0).all(), "the scale of an input is not positive")
    offsets, n_knots = transform.knot_offsets, transform.knots.size
    require(transform.knots.shape == transform.knot_values.shape == (n_knots,), "knots differ")
    require(offsets.dtype == np.int64 and offsets.shape == (n_inputs + 1,), "knots are incomplete")
    sizes = np.diff(offsets)
    require(offsets[0] == 0 and offsets[-1] == n_knots and (sizes >= 0).all(), "knots overlap")
    for kind, scale, size in zip(kinds, transform.scale, sizes, strict=True):
        require(kind != "half-rank" or np.isinf(scale) or size > 0, "an input has no knots")
    return transform


# -- groups ------------------------------------------------------------------------------------


def groups_record(groups: Groups, store: ArrayStore) -> Record:
    """There may be a label for every row: they are an array too, of the bytes of a JSON list."""
    labels = json.dumps([encode(label, "groups") for label in groups.labels])
    as_bytes = np.frombuffer(labels.encode(), np.uint8)
    return {
        "numbers": store.add("groups.numbers", groups.numbers),
        "labels": store.add("groups.labels", as_bytes),
    }


def read_groups(record: Record, arrays: dict[str, Array], n: int) -> Groups:
    numbers, as_bytes = arrays[record["numbers"]], arrays[record["labels"]]
    require(numbers.dtype == np.int32 and numbers.shape == (n,), f"groups of {numbers.shape}")
    require(as_bytes.dtype == np.uint8, f"labels of groups are of {as_bytes.dtype}")
    labels = decode(json.loads(as_bytes.tobytes()))
    require(isinstance(labels, list), "labels of groups are no list")
    require(len(set(labels)) == len(labels), "a label of groups is there twice")
    require(numbers.min() >= -1 and numbers.max() < len(labels), "a group has no label")
    return Groups(numbers, tuple(labels))


# -- what tuning tried -------------------------------------------------------------------------


def tuning_record(tuning: TuningResult, store: ArrayStore) -> Record:
    """All of it: the predictions of a few thousand compared points are small beside the rows."""
    candidates = []
    for k, candidate in enumerate(tuning.candidates):
        predicted = candidate.predicted
        candidates.append(
            {
                "arrays": {
                    name: store.add(f"candidates.{k}.{name}", getattr(predicted, name))
                    for name in ("mean", "scale", "dof")
                },
                "model": local_model_record(candidate.model),
                **{name: encode(getattr(candidate, name), name) for name in CANDIDATE_VALUES},
                "is_integrated": candidate.is_integrated,
            }
        )
    values = {name: encode(getattr(tuning, name), name) for name in TUNING_VALUES}
    return {"candidates": candidates, **values}


CANDIDATE_VALUES = ("input_transform", "n_neighbors", "loss", "standard_error", "seconds")
TUNING_VALUES = (
    "objective",
    "weights",
    "loss",
    "scale_factor",
    "n_compared",
    "seconds",
    "is_complete",
    "at_bounds",
    "boosted_share",
)


def read_tuning(record: Record, arrays: dict[str, Array], n_inputs: int) -> TuningResult:
    candidates = tuple(
        Candidate(
            model=read_local_model(one["model"], n_inputs),
            predicted=PredictiveDistribution(
                **{name: arrays[one["arrays"][name]] for name in ("mean", "scale", "dof")}
            ),
            **{name: decode(one[name]) for name in CANDIDATE_VALUES},
            is_integrated=_read_flag(one, "is_integrated"),
        )
        for one in record["candidates"]
    )
    values = {name: decode(record[name]) for name in TUNING_VALUES}
    tuning = TuningResult(candidates=candidates, **values)
    for candidate in candidates:
        for name in ("loss", "standard_error", "seconds"):
            require_real(name, getattr(candidate, name))
    for name in ("loss", "seconds"):
        require_real(name, getattr(tuning, name))
    shape = np.shape(tuning.weights)
    require(shape == (len(candidates),), f"tuning has weights of shape {shape}")
    require_finite("weights", tuning.weights)
    return tuning
