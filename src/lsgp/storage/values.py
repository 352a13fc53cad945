# SPDX-License-Identifier: BSD-3-Clause
"""Settings as JSON, exactly: numbers, arrays, containers and kernels that are no names.

Numbers, strings, lists and None are themselves; anything else is a table with its ``type``.
Decoding knows these types and the kernel classes listed here, and nothing else.
"""

from __future__ import annotations

import inspect
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from lsgp.inputs.coordinates import Rotated, Sphere
from lsgp.inputs.effort import Effort
from lsgp.inputs.hyperparameters import Hyperparameters
from lsgp.inputs.localizer import Localizer
from lsgp.inputs.setting import Frozen
from lsgp.method.kernels import SumKernel
from lsgp.storage.model_file import ModelFileError

#: scikit-learn's own kernels, which are all in one module.
KERNEL_CLASSES: dict[str, type[sk.Kernel]] = {
    name: kind
    for name, kind in vars(sk).items()
    if isinstance(kind, type)
    and issubclass(kind, sk.Kernel)
    and kind.__module__ == sk.__name__
    and not inspect.isabstract(kind)
}

#: Objects of settings.
FROZEN_CLASSES: dict[str, type[Frozen]] = {
    kind.__name__: kind for kind in (Effort, Hyperparameters, Localizer, Rotated, Sphere)
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
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
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
    if isinstance(value, list):
        return [encode(item, name) for item in value]
    if isinstance(value, tuple):
        return {"type": "tuple", "items": [encode(item, name) for item in value]}
    if isinstance(value, dict):
        items = [[encode(key, name), encode(item, name)] for key, item in value.items()]
        return {"type": "dict", "items": items}
    if isinstance(value, Frozen) and FROZEN_CLASSES.get(type(value).__name__) is type(value):
        parts = {key: encode(part, name) for key, part in value.get_params().items()}
        return {"type": "settings", "class": type(value).__name__, "parameters": parts}
    if isinstance(value, sk.Kernel):
        return _encode_kernel(value, name)
    if isinstance(value, SumKernel):
        own = {"constant": value.constant, "ratios": list(value.ratios)}
        parts = {key: encode(part, name) for key, part in own.items()}
        return {"type": "sum_kernel", "names": list(value.names), **parts}
    if isinstance(value, np.random.RandomState):
        state = value.get_state(legacy=True)
        return {"type": "random_state", "state": encode(tuple(state), name)}
    if hasattr(value, "__array__"):
        return _encode_array(np.asarray(value), name)
    raise ModelFileError(
        f"{name} is {value!r}, of type {type(value).__name__}, which a model file cannot hold. Use "
        "numbers, strings, lists or arrays, or save the model with pickle or joblib."
    )


def _encode_kernel(kernel: sk.Kernel, name: str) -> dict[str, Any]:
    kind = type(kernel).__name__
    if KERNEL_CLASSES.get(kind) is not type(kernel):
        raise ModelFileError(
            f"{name} has a part of type {type(kernel).__module__}.{kind}, which is not one of "
            "scikit-learn's own kernels: a model file holds no code. Use those, or save the model "
            "with pickle or joblib."
        )
    parts = {key: encode(part, name) for key, part in kernel.get_params(deep=False).items()}
    return {"type": "kernel", "class": kind, "parameters": parts}


def _encode_array(array: np.ndarray, name: str) -> dict[str, Any]:
    dtype = "str" if array.dtype.kind == "U" else array.dtype.name
    if dtype not in ARRAY_DTYPES:
        raise ModelFileError(
            f"{name} is an array of {array.dtype}, which a model file cannot hold. Use an array of "
            "numbers or strings."
        )
    items = [encode(item, name) for item in array.ravel().tolist()]
    return {"type": "array", "dtype": dtype, "shape": list(array.shape), "items": items}


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
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(decode(value["items"]))
    if kind == "dict":
        return {decode(key): decode(item) for key, item in value["items"]}
    if kind == "array":
        return _decode_array(value)
    if kind == "settings":
        fields = {str(key): decode(part) for key, part in value["parameters"].items()}
        return FROZEN_CLASSES[value["class"]](**fields)
    if kind == "kernel":
        parts = {str(key): decode(part) for key, part in value["parameters"].items()}
        return KERNEL_CLASSES[value["class"]](**parts)
    if kind == "sum_kernel":
        names, ratios = tuple(value["names"]), tuple(decode(value["ratios"]))
        return SumKernel(names, decode(value["constant"]), ratios)
    if kind == "random_state":
        random = np.random.RandomState()
        random.set_state(decode(value["state"]))
        return random
    raise ValueError(f"unknown type {kind!r}")


def _decode_array(value: dict[str, Any]) -> np.ndarray:
    items, dtype = decode(value["items"]), value["dtype"]
    if dtype not in ARRAY_DTYPES or not isinstance(items, list):
        raise ValueError(f"unknown array of {dtype!r}")
    array = np.empty(len(items), object)
    array[:] = items
    return array.astype(dtype).reshape([int(size) for size in value["shape"]])
