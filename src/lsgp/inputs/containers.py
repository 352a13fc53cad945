# SPDX-License-Identifier: BSD-3-Clause
"""Arrays and tables of other libraries, none of which is imported before somebody gives one.

Arrays that are on a device, CuPy's and tensors of torch, are taken and answered in kind. Where the
model is on that device, they stay there: tensors become arrays of CuPy, and these tensors again, in
the same memory (DLPack). Else they are taken to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from lsgp.method.arrays import is_on_device

#: Who takes arrays of a device, for errors.
TAKE_THEM = "fit, predict, predict_interval and predict_distribution of LSGPRegressor"
LIBRARIES = ("pandas", "polars")


def _unchanged(array: object) -> Any:
    return array


class ArrayKind(NamedTuple):
    """What an array is, and how results become the same."""

    name: str = "an array of the host"  # one that scikit-learn takes by itself
    to_host: Callable[[Any], Any] = _unchanged
    from_host: Callable[[NDArray[Any]], Any] = _unchanged
    #: The same memory as an array of CuPy, and back.
    to_cupy: Callable[[Any], Any] = _unchanged
    from_cupy: Callable[[Any], Any] = _unchanged
    is_on_cuda: bool = False

    @property
    def is_foreign(self) -> bool:
        return self is not PLAIN

    def answer(self, *values: NDArray[Any]) -> Any:
        """Results as the caller's array is: one, or several in a tuple."""
        answered = tuple(
            self.from_cupy(each) if is_on_device(each) else self.from_host(each) for each in values
        )
        return answered[0] if len(answered) == 1 else answered


PLAIN = ArrayKind()


def kind_of(array: Any) -> ArrayKind:
    """Of anything that a user gives.

    Tensors on the host are arrays like others, and are answered in NumPy's, unless scikit-learn's
    ``array_api_dispatch`` asks for answers in kind.
    """
    library = type(array).__module__.partition(".")[0]
    if library == "cupy" and hasattr(array, "get"):
        return ArrayKind("a CuPy array", lambda a: a.get(), _to_cupy(array), is_on_cuda=True)
    if library == "torch" and hasattr(array, "detach"):
        device = array.device
        if device.type != "cpu" or get_config()["array_api_dispatch"]:
            return ArrayKind(
                f"a tensor on {device}",
                lambda a: a.detach().cpu().numpy(),
                lambda a: import_module("torch").as_tensor(np.ascontiguousarray(a), device=device),
                lambda a: import_module("cupy").from_dlpack(a.detach()),
                lambda a: import_module("torch").from_dlpack(a),
                is_on_cuda=device.type == "cuda",
            )
    return PLAIN


def _to_cupy(like: Any) -> Callable[[NDArray[Any]], Any]:
    def to_device(values: NDArray[Any]) -> Any:
        with like.device:
            return import_module("cupy").asarray(values)

    return to_device


def to_host(array: object) -> Any:
    return kind_of(array).to_host(array)


def refuse_device_arrays(X: object) -> None:
    """Raise TypeError where only arrays of the host are taken."""
    kind = kind_of(X)
    if kind.is_foreign:
        raise TypeError(
            f"X is {kind.name}, which only {TAKE_THEM} take. Bring it to the host: "
            "cupy.asnumpy(X), or X.cpu().numpy()."
        )


# -- tables ----------------------------------------------------------------------------------------


def is_dask(X: object) -> bool:
    """Whether X is a Dask array, data frame or series, or an array of xarray with chunks.

    Neither is imported to find out.
    """
    module = type(X).__module__.partition(".")[0]
    if module == "xarray":
        return bool(getattr(X, "chunks", None))
    return module in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def refuse_geometries(X: object) -> None:
    if hasattr(X, "geometry") and hasattr(X, "to_crs"):
        raise TypeError(
            f"X is a {type(X).__name__}, whose geometries have a reference system to keep. Fit it "
            "with lsgp.maps.fit(estimator, X, target), or give its coordinates as columns."
        )


def make_frame(columns: dict[str, object], library: str = "pandas") -> Any:
    """A data frame of these columns; the library is only imported here."""
    if library not in LIBRARIES:
        raise ValueError(f"library={library!r} is not one of {', '.join(map(repr, LIBRARIES))}.")
    try:
        module = import_module(library)
    except ImportError:
        other = LIBRARIES[library == LIBRARIES[0]]
        raise ImportError(
            f"{library} is not installed. Install it, or ask for library={other!r}."
        ) from None
    return module.DataFrame(columns)


def name_columns(name: str, values: NDArray[Any], suffixes: list[str]) -> dict[str, NDArray[Any]]:
    """One column of (k,) values, or one for each target of (k, t): ``name_target``."""
    if values.ndim == 1:
        return {name: values}
    pairs = zip(suffixes, values.T, strict=True)
    return {f"{name}_{suffix}": np.ascontiguousarray(column) for suffix, column in pairs}
