# SPDX-License-Identifier: BSD-3-Clause
"""Many small systems, anywhere: the same functions over the same equations, on different machinery.

`contract` says which functions a backend has. Placement is an argument, never another class for the
user. Imports `_core`, `method`, `compute` and `search`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from lsgp.backends import cpu, reference
from lsgp.backends.contract import Backend
from lsgp.backends.cuda.device import DeviceError, count_devices, find_device
from lsgp.backends.forwarding import DealtBackend, FallbackBackend, PlacedBackend
from lsgp.method.contract import LocalModel

#: Multiply-adds a second of one thread of the native core, with the search beside them.
RATE = 4e9
#: "auto" takes a device for work that would take this machine longer, in seconds: the first use of
#: one in a process takes about two, for importing CuPy and loading kernels.
WORTH = 3.0

cuda = PlacedBackend()
all_devices = DealtBackend(
    "cuda:all", lambda: [backend_named(f"cuda:{k}") for k in range(count_devices())]
)
#: What "auto" takes for much work where there is a device.
cuda_or_cpu = FallbackBackend("cuda or cpu", cuda, cpu)
#: By name. Devices by number are added when they are first asked for.
BACKENDS: dict[str, Backend] = {"cpu": cpu, "cuda": cuda, "reference": reference}
#: What "auto" tries, fastest first.
FASTEST = (cpu, reference)

_OTHERS: dict[str, Backend] = {all_devices.name: all_devices, cuda_or_cpu.name: cuda_or_cpu}


def seconds_to_solve(work: float, n_threads: int) -> float:
    """Seconds that this machine takes for so many multiply-adds in local systems, roughly."""
    return work / (RATE * n_threads)


def backend_named(name: str) -> Backend:
    """The backend of this name, whether or not what it runs on is here."""
    if name in BACKENDS:
        return BACKENDS[name]
    numbered = re.fullmatch(r"cuda:([0-9]+)", name)
    if numbered is not None and name not in _OTHERS:
        _OTHERS.setdefault(name, PlacedBackend(int(numbered[1])))
    if name in _OTHERS:
        return _OTHERS[name]
    known = ", ".join(map(repr, ("auto", *BACKENDS, "cuda:0", "cuda:all")))
    raise ValueError(f"backend={name!r} is not one of {known}. A device is named by its number.")


def is_here(name: str) -> bool:
    """Whether there is such a backend, and what it runs on."""
    try:
        _require(name)
    except (ValueError, DeviceError):
        return False
    return True


def _require(name: str) -> Backend:
    """The backend of this name; a DeviceError where its device is not here."""
    backend = backend_named(name)
    if isinstance(backend, PlacedBackend):
        find_device(backend.number)
    elif backend is all_devices:
        count_devices()
    return backend


def choose_backend(name: str, model: LocalModel, seconds: float = 0.0) -> Backend:
    """The backend of this name; "auto" is the fastest one that knows the model's kernel.

    ``seconds`` is what the work takes this machine, roughly: where that is much, and a device is
    here, "auto" takes that.
    """
    kernel, metric = model.correlation, model.localizer_metric

    def solves(backend: Backend) -> bool:
        # Local systems, or one of all rows, which takes more kernels.
        return backend.knows(kernel) or (backend.factors_once and kernel.is_stationary)

    if name == "auto":
        chosen: Backend = next(b for b in FASTEST if solves(b) and b.knows_metric(metric))
        is_worth = chosen is BACKENDS["cpu"] and seconds > WORTH
        return cuda_or_cpu if is_worth and _has_device() else chosen
    backend = _require(name)
    if not solves(backend):
        raise ValueError(
            f"backend={name!r} does not know the kernel {model.kernel}. Use backend='auto', which "
            "runs it on the reference backend, or a kernel that the native core knows."
        )
    if not backend.knows_metric(metric):
        raise ValueError(
            f"backend={name!r} does not know metric={metric!r} with a "
            "lengthscale for each input. Use backend='auto', which runs it on the reference "
            "backend, or one lengthscale."
        )
    return backend


def is_automatic(backend: Backend) -> bool:
    """Whether it is one that "auto" may stand for."""
    return backend is cuda_or_cpu or backend in FASTEST


def _has_device() -> bool:
    """Without importing CuPy where it is not installed, and none that has failed."""
    is_installed = find_spec("cupy") is not None
    return is_installed and not cuda_or_cpu.is_lost and cuda.why_not() is None
