# SPDX-License-Identifier: BSD-3-Clause
"""Settings as JSON, exactly: numbers, arrays, containers and kernels that are no names.

Numbers, strings, lists and None are themselves; anything else is a table with its ``type``.
Decoding knows these types and the classes listed here, and nothing else.
"""

from __future__ import annotations

import inspect
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from lsgp.inputs.setting import Frozen
from lsgp.inputs.setting_objects import Effort, Hyperparameters, Localizer, Rotated, Sphere
from lsgp.method.kernels import SumKernel
from lsgp.storage.model_file import ModelFileError

#: Classes whose objects are kept by their parameters: those of settings, and scikit-learn's own
#: kernels, which are all in one module.
CLASSES: dict[str, dict[str, type[Any]]] = {
    "settings": {
        kind.__name__: kind for kind in (Effort, Hyperparameters, Localizer, Rotated, Sphere)
    },
    "kernel": {
        name: kind
        for name, kind in vars(sk).items()
        if isinstance(kind, type)
        and issubclass(kind, sk.Kernel)
        and kind.__module__ == sk.__name__
        and not inspect.isabstract(kind)
    },
}

ARRAY_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "str", "object"),
)

#: Whole numbers beyond have no float, and every comparison with one would fail.
LARGEST_INTEGER = 10**300


def encode(value: object, name: str) -> Any:
    """The value as JSON; ``name`` says in errors whose value it is.

    Examples
    --------
    >>> encode((1, float("inf")), "trend")
    {'type': 'tuple', 'items': [1, {'type': 'float', 'value': 'inf'}]}
    """
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        if not abs(int(value)) < LARGEST_INTEGER:
            raise ModelFileError(
                f"{name} is a whole number of more than 300 digits, which a model file cannot "
                "hold. Give a smaller one."
            )
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"type": "float", "value": repr(number)}
    if isinstance(value, list | tuple):
        items = [encode(item, name) for item in value]
        return items if isinstance(value, list) else {"type": "tuple", "items": items}
    if isinstance(value, dict):
        items = [[encode(key, name), encode(item, name)] for key, item in value.items()]
        return {"type": "dict", "items": items}
    if isinstance(value, Frozen | sk.Kernel):
        return _encode_object(value, name)
    if isinstance(value, SumKernel):
        own = {"constant": value.constant, "ratios": list(value.ratios)}
        parts = {key: encode(part, name) for key, part in own.items()}
        return {"type": "sum_kernel", "names": list(value.names), **parts}
    if isinstance(value, np.random.RandomState):
        return {"type": "random_state", "state": encode(value.get_state(legacy=True), name)}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        dtype = "str" if array.dtype.kind == "U" else array.dtype.name
        if dtype not in ARRAY_DTYPES:
            raise ModelFileError(
                f"{name} is an array of {array.dtype}, which a model file cannot hold. Use an "
                "array of numbers or strings."
            )
        items = encode(array.ravel().tolist(), name)
        return {"type": "array", "dtype": dtype, "shape": list(array.shape), "items": items}
    raise ModelFileError(
        f"{name} is {value!r}, of type {type(value).__name__}, which a model file cannot hold. Use "
        "numbers, strings, lists or arrays, or save the model with pickle or joblib."
    )


def _encode_object(value: Frozen | sk.Kernel, name: str) -> dict[str, Any]:
    """Settings or a kernel by class and parameters, if the class is ours or scikit-learn's."""
    kind, own = "kernel" if isinstance(value, sk.Kernel) else "settings", type(value)
    if CLASSES[kind].get(own.__name__) is not own:
        raise ModelFileError(
            f"{name} has a part of type {own.__module__}.{own.__name__}, which is not one of "
            "scikit-learn's own kernels: a model file holds no code. Use those, or save the model "
            "with pickle or joblib."
        )
    parts = {key: encode(part, name) for key, part in value.get_params(deep=False).items()}
    return {"type": kind, "class": own.__name__, "parameters": parts}


def decode(value: object) -> Any:
    """The value that was encoded; ValueError, TypeError or KeyError if there is none.

    Examples
    --------
    >>> decode({"type": "tuple", "items": [1, {"type": "float", "value": "inf"}]})
    (1, inf)
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, int) and not abs(value) < LARGEST_INTEGER:
        raise ValueError("a whole number of more than 300 digits")
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind in CLASSES:
        fields = {str(key): decode(part) for key, part in value["parameters"].items()}
        return CLASSES[kind][value["class"]](**fields)
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(decode(value["items"]))
    if kind == "dict":
        return {decode(key): decode(item) for key, item in value["items"]}
    if kind == "array":
        items, dtype = decode(value["items"]), value["dtype"]
        if dtype not in ARRAY_DTYPES or not isinstance(items, list):
            raise ValueError(f"unknown array of {dtype!r}")
        array = np.empty(len(items), object)
        array[:] = items
        return array.astype(dtype).reshape([int(size) for size in value["shape"]])
    if kind == "sum_kernel":
        names, ratios = tuple(value["names"]), tuple(decode(value["ratios"]))
        return SumKernel(names, decode(value["constant"]), ratios)
    if kind == "random_state":
        random = np.random.RandomState()
        random.set_state(decode(value["state"]))
        return random
    raise ValueError(f"unknown type {kind!r}")
