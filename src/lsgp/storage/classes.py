# SPDX-License-Identifier: BSD-3-Clause
"""What a classifier has beside its models, as a record of a model file, and back, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.classification import Classification
from lsgp.inputs.transforms import Projection
from lsgp.method.kernels import KERNELS
from lsgp.method.link import LinearLogits, Link
from lsgp.solvers.laplace import Covariance, LaplaceGP
from lsgp.storage.boosted import boosted_record, read_boosted
from lsgp.storage.records import (
    ArrayStore,
    Record,
    read_transform,
    require,
    require_finite,
    require_number,
)
from lsgp.storage.values import decode, encode
from lsgp.tuning.class_members import LaplaceMember, LinearMember, TreesMember

LINK_NUMBERS = ("slope", "base_width", "latent_width", "prior_share")
COVARIANCE_NUMBERS = ("slope_variance", "amplitude", "constant_variance")


def classification_record(own: Classification | None, store: ArrayStore) -> Record | None:
    if own is None:
        return None
    return {
        "classes": encode(own.classes, "classes_"),
        "label_name": own.label_name,
        "prior": encode(own.prior, "prior"),
        "links": [
            {
                **{name: getattr(link, name) for name in LINK_NUMBERS},
                "bias": encode(link.bias, "bias"),
            }
            for link in own.links
        ],
        "linear": [_linear_record(one, f"linear.{k}.", store) for k, one in enumerate(own.linear)],
        "laplace": [
            _laplace_record(one, f"laplace.{k}.", store) for k, one in enumerate(own.laplace)
        ],
        "trees": [
            boosted_record(replace(one.trees, share=one.weight), store, "trees.")
            for one in own.trees
        ],
    }


def _linear_record(member: LinearMember, prefix: str, store: ArrayStore) -> Record:
    arrays = {
        "coefficients": member.logits.coefficients,
        "intercept": member.logits.intercept,
        **member.transform.to_arrays(),
    }
    return {
        "arrays": {name: store.add(prefix + name, array) for name, array in arrays.items()},
        "input_transform": list(member.transform.kinds),
        "prior_share": member.logits.prior_share,
        "ridge": member.ridge,
        "weight": member.weight,
    }


def _laplace_record(member: LaplaceMember, prefix: str, store: ArrayStore) -> Record:
    gp, covariance = member.gp, member.gp.covariance
    arrays = {
        "mean": member.center,
        "Z": gp.Z,
        "codes": gp.codes,
        "row_weight": gp.weight,
        "lengthscale": covariance.lengthscale,
        **member.transform.to_arrays(),
    }
    return {
        "arrays": {name: store.add(prefix + name, array) for name, array in arrays.items()},
        "input_transform": list(member.transform.kinds),
        "kernel": covariance.kernel,
        **{name: getattr(covariance, name) for name in COVARIANCE_NUMBERS},
        "prior_share": gp.prior_share,
        "weight": member.weight,
    }


def read_classification(
    record: Record | None,
    arrays: dict[str, NDArray[Any]],
    n_inputs: int,
    sizes: tuple[int, int, int],
    projection: Projection | None = None,
) -> Classification | None:
    """What the record says; ``sizes`` are the numbers of rows, of models and of their columns."""
    if record is None:
        return None
    n_rows, n_models, n_targets = sizes
    classes = decode(record["classes"])
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes are no list")
    n_classes = len(classes)
    n_columns = 1 if n_classes == 2 else n_classes
    require(n_columns == n_targets, f"{n_targets} columns for {n_classes} classes")
    name = record["label_name"]
    require(name is None or isinstance(name, str), f"label_name is {name!r}")
    prior = _read_values(record["prior"], n_classes, "prior")
    require((prior > 0).all(), "a class has no prior")
    links = tuple(_read_link(one, prior) for one in record["links"])
    require(len(links) == n_models, f"{len(links)} links for {n_models} models")
    linear = tuple(
        _read_linear(one, arrays, n_inputs, prior, projection) for one in record["linear"]
    )
    laplace = tuple(
        _read_laplace(one, arrays, n_inputs, prior, projection) for one in record["laplace"]
    )
    read = (read_boosted(one, arrays, n_rows, n_inputs, n_targets) for one in record["trees"])
    trees = tuple(TreesMember(one, one.share) for one in read if one is not None)
    return Classification(classes, links, (*linear, *laplace, *trees), name)


def _read_link(record: Record, prior: NDArray[np.float64]) -> Link:
    for name in LINK_NUMBERS:
        require_number(name, record[name])
    _require_share(record["prior_share"])
    return Link(
        slope=record["slope"],
        base_width=record["base_width"],
        latent_width=record["latent_width"],
        prior_share=record["prior_share"],
        bias=_read_values(record["bias"], len(prior), "bias"),
        prior=prior,
    )


def _read_linear(
    record: Record,
    arrays: dict[str, NDArray[Any]],
    n_inputs: int,
    prior: NDArray[np.float64],
    projection: Projection | None,
) -> LinearMember:
    own = {name: arrays[stored] for name, stored in record["arrays"].items()}
    for name, shape in (("coefficients", (len(prior), n_inputs)), ("intercept", (len(prior),))):
        is_right = own[name].shape == shape and own[name].dtype == np.float64
        require(is_right, f"{name} of shape {own[name].shape} for {len(prior)} classes")
    for name in ("ridge", "weight"):
        require_number(name, record[name])
    _require_share(record["prior_share"])
    transform = read_transform(record["input_transform"], own, n_inputs, projection)
    logits = LinearLogits(own["coefficients"], own["intercept"], record["prior_share"], prior)
    return LinearMember(transform, logits, record["ridge"], record["weight"])


def _read_laplace(
    record: Record,
    arrays: dict[str, NDArray[Any]],
    n_inputs: int,
    prior: NDArray[np.float64],
    projection: Projection | None,
) -> LaplaceMember:
    own = {name: arrays[stored] for name, stored in record["arrays"].items()}
    Z, codes, weight = own["Z"], own["codes"], own["row_weight"]
    n = len(Z)
    for name, shape in (
        ("Z", (n, n_inputs)),
        ("mean", (n_inputs,)),
        ("lengthscale", (n_inputs,)),
        ("row_weight", (n,)),
    ):
        is_right = own[name].shape == shape and own[name].dtype == np.float64
        require(is_right, f"{name} of shape {own[name].shape} for {n} rows")
        require_finite(name, own[name])
    require(codes.dtype == np.int64 and codes.shape == (n,), f"codes of shape {codes.shape}")
    require(n > 0 and codes.min() >= 0 and codes.max() < len(prior), "a code is of no class")
    require((own["lengthscale"] > 0).all() and (weight >= 0).all(), "a scale is not positive")
    require(record["kernel"] in KERNELS, f"unknown kernel {record['kernel']!r}")
    for name in ("weight", *COVARIANCE_NUMBERS):
        require_number(name, record[name])
    _require_share(record["prior_share"])
    transform = read_transform(record["input_transform"], own, n_inputs, projection)
    covariance = Covariance(
        record["kernel"],
        own["lengthscale"],
        *(record[name] for name in COVARIANCE_NUMBERS),
    )
    gp = LaplaceGP.fit(covariance, Z, codes, weight, prior, record["prior_share"])
    return LaplaceMember(transform, own["mean"], gp, record["weight"])


def _read_values(record: object, n: int, name: str) -> NDArray[np.float64]:
    values = decode(record)
    is_right = isinstance(values, np.ndarray) and values.shape == (n,) and values.dtype == float
    require(is_right and np.isfinite(values).all(), f"{name} is not {n} numbers")
    return np.asarray(values)


def _require_share(value: object) -> None:
    share = require_number("prior_share", value)
    require(0.0 < share < 1.0, f"prior_share is {value!r}")
