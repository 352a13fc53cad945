# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp info``: what a model file holds, or what this installation is."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import lsgp
from lsgp._core import available_instruction_sets, instruction_set
from lsgp.backends.cuda.device import DeviceError, count_devices, find_device, why_not
from lsgp.backends.cuda.modules import compiled_kernels
from lsgp.cli.console import Voice, write_json, write_rows
from lsgp.cli.describe import describe_model, describe_models
from lsgp.cli.errors import list_names
from lsgp.cli.estimators import load_model
from lsgp.compute.threads import resolve_n_jobs
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.view import input_names, names_of_model_inputs

#: What lsgp uses, and what it uses if it is there.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "narwhals")
EXTRAS = ("polars", "matplotlib", "jinja2", "xarray", "rioxarray")


def run(options: argparse.Namespace, voice: Voice) -> None:
    if options.model is None:
        describe_installation(voice)
    else:
        describe_file(options, voice)


def describe_installation(voice: Voice) -> None:
    libraries = {name: _version(name) for name in (*LIBRARIES, *EXTRAS)}
    devices = _devices()
    facts = {
        "version": lsgp.__version__,
        "instruction_set": instruction_set,
        "instruction_sets": list(available_instruction_sets()),
        "n_cores": resolve_n_jobs(-1),
        "devices": devices,
        "kernels": None if not devices else compiled_kernels()._asdict(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": libraries,
    }
    if voice.as_json:
        write_json(facts)
        return
    available = ", ".join(available_instruction_sets())
    write_rows(
        [
            ("lsgp", lsgp.__version__),
            ("Instruction set", f"{instruction_set} (available: {available})"),
            ("Cores", str(facts["n_cores"])),
            *_describe_devices(devices),
            ("Python", f"{platform.python_version()}, {platform.platform()}"),
            *((name, libraries[name] or "not installed") for name in libraries),
        ]
    )


def describe_file(options: argparse.Namespace, voice: Voice) -> None:
    model = load_model(options)
    facts = describe_model(model)
    n_bytes = Path(options.model).stat().st_size
    if voice.as_json:
        write_json({"file": options.model, "n_bytes": n_bytes, **facts})
        return
    tuning = model.tuning_
    tuned = "not tuned: hyperparameters were given"
    if tuning is not None:
        complete = "" if tuning.is_complete else ", ended early"
        tuned = (
            f"by {tuning.objective}, loss {tuning.loss:.4g}, {len(tuning.candidates)} candidates "
            f"in {tuning.seconds:.1f} s{complete}"
        )
    heaviest = facts["models"][0]
    inputs = names_of_model_inputs(model.ensemble_)
    scales = zip(inputs, heaviest["lengthscale"], strict=True)
    write_rows(
        [
            ("File", f"{options.model}, {n_bytes / 1e6:.1f} MB"),
            ("Target", list_names(facts["targets"])),
            ("Inputs", list_names(facts["features"])),
            *(
                ("" if k else "Columns", f"{each['column']}: {each['kind']}, {each['became']}")
                for k, each in enumerate(facts["encoding"])
            ),
            *_coordinates(model.ensemble_),
            ("Training rows", f"{facts['n_train']:,}"),
            ("Tuning", tuned),
            *describe_models(model),
            ("Localizer", heaviest["localizer"]),
            ("Lengthscales", list_names(f"{name} {scale:.3g}" for name, scale in scales)),
            ("Noise variance", f"{heaviest['noise_variance']:.3g} of the signal variance"),
        ]
    )


def _devices() -> list[str]:
    """The GPUs of ``backend="cuda"``; none without CuPy."""
    try:
        found = [find_device(number) for number in range(count_devices())]
    except DeviceError:
        return []
    return [
        f"{device.name}, {device.memory / 1e9:.0f} GB, compute capability "
        f"{device.compute_capability}, CuPy {device.cupy_version}"
        for device in found
    ]


def _describe_devices(devices: list[str]) -> list[tuple[str, str]]:
    if not devices:
        reason = "CuPy is not installed: pip install 'lsgp[cuda12]' or 'lsgp[cuda13]'"
        if find_spec("cupy") is not None:
            reason = why_not() or ""
        return [("Device", f"none ({reason})")]
    kernels = compiled_kernels()
    compiled = (
        f"{len(kernels.modules)} modules ({', '.join(kernels.modules)}), compiled when first used; "
        f"CuPy's cache has {kernels.n_compiled} compiled files in {kernels.cache}"
    )
    named = [(f"Device {number}", each) for number, each in enumerate(devices)]
    return [*named, ("Kernels", compiled)]


def _coordinates(ensemble: Ensemble) -> list[tuple[str, str]]:
    """Which inputs are coordinates on a map, where that is known."""
    known = ensemble.georeference
    if known is None:
        return []
    x, y = (input_names(ensemble)[column] for column in (known.x, known.y))
    return [("Coordinates", f"{x}, {y}, in {known.crs_name or 'an unknown reference system'}")]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
