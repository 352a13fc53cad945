# SPDX-License-Identifier: BSD-3-Clause
"""Records of the projection of two inputs."""

from __future__ import annotations

from lsgp.inputs.transforms import Projection, Rotation, Sphere
from lsgp.storage.records import Record, require, require_real


def projection_record(projection: Projection | None) -> Record | None:
    if projection is None:
        return None
    return {"kind": projection.kind, "pair": list(projection.pair), **projection.settings}


def read_projection(record: Record | None, n_inputs: int) -> Projection | None:
    if record is None:
        return None
    pair = record["pair"]
    is_pair = isinstance(pair, list) and len(set(pair)) == len(pair) == 2
    is_known = is_pair and all(type(j) is int and 0 <= j < n_inputs for j in pair)
    require(is_known, f"the inputs {pair!r} of a projection, of {n_inputs}")
    if record["kind"] == Rotation.kind:
        angle, ratio = record["angle"], record["ratio"]
        require_real("angle", angle)
        require(ratio is None or 0 < ratio <= 1, f"the ratio of an anisotropy is {ratio!r}")
        return Rotation(pair[0], pair[1], angle, ratio)
    require(record["kind"] == Sphere.kind, f"unknown projection {record['kind']!r}")
    require_real("center", record["center"])
    return Sphere(pair[0], pair[1], record["center"])
