# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs are projected, as the settings of an estimator say, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs import setting_objects
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.encoding.cells import column_number
from lsgp.inputs.encoding.encodings import Number
from lsgp.inputs.transforms import Projection, Rotation, Sphere
from lsgp.method.kernels import Groups, first_of_groups

Array = NDArray[np.float64]
#: One kind of transform for each input, or each column that a projection made of them.
Kinds = tuple[str | None, ...]


def find_projection(
    given: setting_objects.Sphere | setting_objects.Rotated | None,
    X: Array,
    columns: list[str],
    encoder: Encoder | None,
    angle_of: Callable[[tuple[int, int]], float],
) -> Projection | None:
    """What becomes of two inputs of the training rows X (n, d); None if each is for itself.

    ``columns`` are the names of the table's, and ``angle_of`` finds the direction of two inputs.
    """
    if given is None:
        return None
    names = columns if encoder is None else encoder.names
    setting, two = f"coordinates={given!r}", list(given.get_params().values())[:2]
    if two[0] is None:
        if len(names) != 2:
            raise ValueError(
                f"{given!r} is of two coordinates, and X has {len(names)} columns. Name them: "
                "Rotated(east, north)."
            )
        two = [0, 1]
    one, other = (column_number(each, names, setting) for each in two)
    if one == other:
        raise ValueError(f"{setting} has one column twice. Give two of them.")
    if encoder is not None:
        for j in (one, other):
            encoding = encoder.encodings[j]
            if not isinstance(encoding.scheme, Number):
                raise ValueError(
                    f"{setting} has the column {encoding.name!r}, which is {encoding.said}. Give "
                    "columns of numbers that vary."
                )
        one, other = (encoder.spans[j].start for j in (one, other))
    if isinstance(given, setting_objects.Sphere):
        sphere = Sphere.fit((one, other), X)
        sphere.check(X, columns if encoder is None else encoder.inputs)
        return sphere
    angle = angle_of((one, other)) if given.angle is None else float(given.angle)
    return Rotation(one, other, angle, given.ratio)


def group_columns(n_inputs: int, projection: Projection | None) -> Groups:
    """The number of the lengthscale of each column: one for all that are tied."""
    if projection is None:
        return tuple(range(n_inputs))
    sources = projection.sources(n_inputs)
    if not projection.is_tied:
        return tuple(range(len(sources)))
    keys = [projection.pair[0] if j in projection.pair else j for j in sources]
    distinct = list(dict.fromkeys(keys))
    return tuple(distinct.index(key) for key in keys)


def spread_over_columns(lengthscale: Array, n_inputs: int, projection: Projection | None) -> Array:
    """Lengthscales of the inputs (d,) as those of the columns (e,)."""
    if projection is None:
        return lengthscale
    one, other = (float(lengthscale[j]) for j in projection.pair)
    if projection.is_tied and one != other:
        raise ValueError(
            f"lengthscale has {one:g} and {other:g} for the two inputs that are projected, which "
            "have one together. Give the same number for both."
        )
    return np.ascontiguousarray(lengthscale[list(projection.sources(n_inputs))])


def bounds_of_groups(
    bounds: Mapping[str, Array], sources: tuple[int, ...], groups: Groups
) -> Mapping[str, Array]:
    """Bounds of lengthscales by input, as those of groups of columns."""
    own = bounds.get("lengthscale")
    if own is None or len(own) == 1:
        return bounds
    return {**bounds, "lengthscale": own[[sources[j] for j in first_of_groups(groups)]]}


def kinds_of_columns(
    kinds: tuple[Kinds, ...], n_inputs: int, projection: Projection | None
) -> tuple[Kinds, ...]:
    """The kinds of columns that inputs of these kinds become; those of a projection have its own.

    Or none, where inputs are taken as they are.
    """
    if projection is None:
        return kinds
    found = []
    for own in kinds:
        linked = None if None in [own[j] for j in projection.pair] else projection.kind
        sources = projection.sources(n_inputs)
        found.append(tuple(linked if j in projection.pair else own[j] for j in sources))
    return tuple(dict.fromkeys(found))
