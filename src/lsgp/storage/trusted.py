# SPDX-License-Identifier: BSD-3-Clause
"""The types that a stored estimator consists of, for stores that load only what is trusted."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from lsgp.ensemble.ensemble import Ensemble
from lsgp.storage import estimator as estimator  # with which the classes of all parts are there
from lsgp.storage.values import FROZEN_CLASSES

#: The estimators, which are in a room above.
ESTIMATORS = (
    "lsgp.estimators.classifier.LSGPClassifier",
    "lsgp.estimators.regressor.LSGPRegressor",
)
#: Where classes live that an ensemble has among its parts.
ROOMS = ("method", "search", "backends", "solvers", "inputs", "tuning", "ensemble")


@cache
def trusted_types() -> tuple[str, ...]:
    """What to trust when skops, or mlflow with it, loads an estimator.

    They follow from the fields of an ensemble: classes of this library that hold arrays, numbers
    and words, and run no code when they are made. Kernel objects of scikit-learn and classes of
    your own are not among them.

    Examples
    --------
    >>> from lsgp.storage.trusted import trusted_types
    >>> "lsgp.method.contract.LocalModel" in trusted_types()
    True
    """
    waiting: list[type] = [Ensemble, *FROZEN_CLASSES.values()]
    found: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind in found or not kind.__module__.startswith("lsgp."):
            continue
        found.add(kind)
        if _is_abstract(kind):
            waiting += _kinds_of(kind)
        else:
            for hint in get_type_hints(kind).values():
                waiting += () if get_origin(hint) is ClassVar else _classes_in(hint)
    names = {f"{kind.__module__}.{kind.__name__}" for kind in found if not _is_abstract(kind)}
    return tuple(sorted({*names, *ESTIMATORS}))


def _is_abstract(kind: Any) -> bool:
    return bool(getattr(kind, "_is_protocol", False)) or inspect.isabstract(kind)


def _kinds_of(abstract: type) -> list[type]:
    """The classes that are a kind of an abstract one, or have all methods of a protocol."""
    if not getattr(abstract, "_is_protocol", False):
        return [kind for kind in _own_classes() if issubclass(kind, abstract)]
    asked = [name for name, value in vars(abstract).items() if inspect.isfunction(value)]
    asked = [name for name in asked if not name.startswith("_")]
    return [
        kind
        for kind in _own_classes()
        if asked and not _is_abstract(kind) and all(hasattr(kind, name) for name in asked)
    ]


def _own_classes() -> Iterator[type]:
    for name, module in list(sys.modules.items()):
        if name.startswith("lsgp.") and name.split(".")[1] in ROOMS:
            yield from (
                value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == name
            )


def _classes_in(hint: Any) -> Iterator[type]:
    """The classes that a type hint names."""
    if isinstance(hint, type):
        yield hint
    for part in get_args(hint):
        yield from _classes_in(part)
