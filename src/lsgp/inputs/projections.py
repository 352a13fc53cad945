# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs are projected, as the settings of an estimator say, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding import Encoder
from lsgp.inputs.encoding.encodings import Number
from lsgp.inputs.given import Columns, GivenAnisotropy
from lsgp.inputs.transforms import Projection, Rotation, Sphere
from lsgp.method.kernels import Groups, first_of_groups

Array = NDArray[np.float64]
#: One kind of transform for each input, or each column that a projection made of them.
Kinds = tuple[str | None, ...]


class Places(NamedTuple):
    """The settings of an estimator that say which two columns mean something together."""

    sphere: Columns | None
    anisotropy: GivenAnisotropy
    anisotropic_features: Columns | None


def find_projection(
    given: Places,
    X: Array,
    columns: list[str],
    encoder: Encoder | None,
    angle_of: Callable[[tuple[int, int]], float],
) -> Projection | None:
    """What becomes of two inputs of the training rows X (n, d); None if each is for itself.

    ``columns`` are the names of the table's, and ``angle_of`` finds the direction of two inputs.
    """
    if given.sphere is None and given.anisotropy is None:
        return None
    if given.sphere is not None and given.anisotropy is not None:
        raise ValueError(
            f"sphere={given.sphere!r} and anisotropy={given.anisotropy!r} are both given, but on "
            "the sphere there is no direction everywhere. Give one of them."
        )
    names = columns if encoder is None else encoder.names
    if given.sphere is not None:
        setting, pair = "sphere", _pair_of_columns("sphere", given.sphere, names)
    else:
        setting, pair = "anisotropy", _rotated_pair(given.anisotropic_features, names)
    if encoder is not None:
        pair = _inputs_of_columns(setting, pair, encoder)
    if given.sphere is not None:
        sphere = Sphere.fit(pair, X)
        sphere.check(X, columns if encoder is None else encoder.inputs)
        return sphere
    known = _angle_and_ratio(given.anisotropy)
    return Rotation(*pair, angle_of(pair)) if known is None else Rotation(*pair, *known)


def _pair_of_columns(setting: str, given: object, names: Sequence[str]) -> tuple[int, int]:
    """Numbers of the two columns that a setting gives by name or number."""
    is_text = isinstance(given, str)
    if is_text or not isinstance(given, Sequence | np.ndarray) or len(given) != 2:
        raise ValueError(
            f"{setting}={given!r} is not a pair of columns. Give two names, or two numbers."
        )
    numbers = [_number_of_column(setting, each, names) for each in given]
    if numbers[0] == numbers[1]:
        raise ValueError(f"{setting}={given!r} has one column twice. Give two of them.")
    return numbers[0], numbers[1]


def _number_of_column(setting: str, given: object, names: Sequence[str]) -> int:
    if isinstance(given, str) and given in names:
        return names.index(given)
    is_flag = isinstance(given, bool)
    if not is_flag and isinstance(given, int | np.integer) and 0 <= given < len(names):
        return int(given)
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(
        f"{setting} has {given!r}, which is not a column of X. Its columns are {listed}: give "
        f"names, or numbers from 0 to {len(names) - 1}."
    )


def _inputs_of_columns(setting: str, pair: tuple[int, int], encoder: Encoder) -> tuple[int, int]:
    """Numbers of the inputs that two columns of an encoded table became, each a number itself."""
    spans = encoder.spans
    for j in pair:
        encoding = encoder.encodings[j]
        if not isinstance(encoding, Number):
            raise ValueError(
                f"{setting} has the column {encoding.name!r}, which is {encoding.said}. Give "
                "columns of numbers that vary."
            )
    return spans[pair[0]].start, spans[pair[1]].start


def _rotated_pair(given: Columns | None, names: Sequence[str]) -> tuple[int, int]:
    """The columns that an anisotropy is of: those that are given, or the two that there are."""
    if given is not None:
        return _pair_of_columns("anisotropic_features", given, names)
    if len(names) != 2:
        raise ValueError(
            f"anisotropy is of two coordinates, and X has {len(names)} columns. Name them: "
            "anisotropic_features=(east, north)."
        )
    return 0, 1


def _angle_and_ratio(given: GivenAnisotropy) -> tuple[float, float] | None:
    """An anisotropy that is known; None if tuning is to find it."""
    if isinstance(given, str) and given == "rotated":
        return None
    try:
        angle, ratio = map(float, cast("tuple[float, float]", given))
    except (TypeError, ValueError):
        angle, ratio = np.nan, np.nan
    if not (np.isfinite(angle) and 0 < ratio <= 1):
        raise ValueError(
            f"anisotropy={given!r} is neither 'rotated' nor (angle, ratio): degrees clockwise from "
            "north of the longest range, and the shortest range over it, above 0 and up to 1."
        )
    return angle, ratio


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

    def spread(own: Kinds) -> Kinds:
        pair = [own[j] for j in projection.pair]
        linked = None if None in pair else projection.kind
        return tuple(linked if j in projection.pair else own[j] for j in sources)

    sources = projection.sources(n_inputs)
    return tuple(dict.fromkeys(spread(own) for own in kinds))
