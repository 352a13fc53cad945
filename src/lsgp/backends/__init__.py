# SPDX-License-Identifier: BSD-3-Clause
"""Many small systems, anywhere: the same functions over the same equations, on different machinery.

`contract` says which functions a backend has. Placement is an argument, never another class for the
user. Imports `_core`, `method`, `compute` and `search`.
"""

from __future__ import annotations

from lsgp.backends import cpu, reference
from lsgp.backends.contract import Backend
from lsgp.backends.cuda.backend import CudaBackend
from lsgp.backends.cuda.device import DeviceError
from lsgp.method.contract import LocalModel

cuda = CudaBackend()
BACKENDS: dict[str, Backend] = {"cpu": cpu, "cuda": cuda, "reference": reference}
#: What "auto" tries, fastest first.
FASTEST = (cpu, reference)


def is_here(name: str) -> bool:
    """Whether there is such a backend, and what it runs on."""
    return name in BACKENDS and (BACKENDS[name] is not cuda or cuda.why_not() is None)


def choose_backend(name: str, model: LocalModel) -> Backend:
    """The backend of this name; "auto" is the fastest one that knows the model's kernel."""
    if name == "auto":
        return next(
            backend
            for backend in FASTEST
            if backend.knows(model.correlation) and backend.knows_metric(model.localizer_metric)
        )
    if name not in BACKENDS:
        raise ValueError(
            f"backend={name!r} is not one of {', '.join(map(repr, ('auto', *BACKENDS)))}."
        )
    if name == cuda.name and (reason := cuda.why_not()) is not None:
        raise DeviceError(reason)
    if not BACKENDS[name].knows(model.correlation):
        raise ValueError(
            f"backend={name!r} does not know the kernel {model.kernel}. Use backend='auto', which "
            "runs it on the reference backend, or a kernel that the native core knows."
        )
    if not BACKENDS[name].knows_metric(model.localizer_metric):
        raise ValueError(
            f"backend={name!r} does not know localizer_metric={model.localizer_metric!r} with a "
            "lengthscale for each input. Use backend='auto', which runs it on the reference "
            "backend, or one lengthscale."
        )
    return BACKENDS[name]
