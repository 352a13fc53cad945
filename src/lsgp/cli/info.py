# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp info``: what a model file holds, or what this installation is."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lsgp
from lsgp._core import available_instruction_sets, instruction_set
from lsgp.backends.cuda.device import DeviceError, count_devices, find_device, why_not
from lsgp.backends.cuda.modules import compiled_kernels
from lsgp.cli.console import Voice, write_json, write_rows
from lsgp.cli.errors import list_names
from lsgp.cli.models import Estimator, load_model, names_of_targets
from lsgp.compute.threads import resolve_n_jobs
from lsgp.ensemble.describe import COLUMNS, model_rows
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_names, names_of_model_inputs

#: What lsgp uses, and what it uses if it is there.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "narwhals")
EXTRAS = ("polars", "matplotlib", "jinja2", "xarray", "rioxarray")

#: Hyperparameters that are told as they are.
HYPERPARAMETERS = (
    *("localizer", "bandwidth", "reach", "signal_variance", "noise_variance", "constant_variance"),
    *("slope_variance", "localizer_decay", "scale_dof"),
)
#: What is told of tuning, beside the number of candidates.
TUNING = ("objective", "loss", "n_compared", "seconds", "is_complete")


def run_info(options: argparse.Namespace, voice: Voice) -> None:
    """Describe the model file, or the installation where none is named."""
    if options.model is None:
        facts, rows = describe_installation()
    else:
        facts, rows = describe_file(options)
    if voice.as_json:
        write_json(facts)
    else:
        write_rows(rows)


# -- an installation -------------------------------------------------------------------------------


def describe_installation() -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The library, its parts and this machine, for programs and for people."""
    libraries = {name: _version(name) for name in (*LIBRARIES, *EXTRAS)}
    devices = _devices()
    kernels = compiled_kernels() if devices else None
    facts = {
        "version": lsgp.__version__,
        "instruction_set": instruction_set,
        "instruction_sets": list(available_instruction_sets()),
        "n_cores": resolve_n_jobs(-1),
        "devices": devices,
        "kernels": None if kernels is None else kernels._asdict(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": libraries,
    }
    shown = [(f"Device {number}", each) for number, each in enumerate(devices)]
    if kernels is not None:
        names = ", ".join(kernels.modules)
        compiled = (
            f"{len(kernels.modules)} modules ({names}), compiled when first used; CuPy's cache has "
            f"{kernels.n_compiled} compiled files in {kernels.cache}"
        )
        shown.append(("Kernels", compiled))
    else:
        reason = "CuPy is not installed: pip install 'lsgp[cuda12]' or 'lsgp[cuda13]'"
        if find_spec("cupy") is not None:
            reason = why_not() or ""
        shown.append(("Device", f"none ({reason})"))
    available = ", ".join(available_instruction_sets())
    return facts, [
        ("lsgp", lsgp.__version__),
        ("Instruction set", f"{instruction_set} (available: {available})"),
        ("Cores", str(facts["n_cores"])),
        *shown,
        ("Python", f"{platform.python_version()}, {platform.platform()}"),
        *((name, libraries[name] or "not installed") for name in libraries),
    ]


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


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# -- a model ---------------------------------------------------------------------------------------


def describe_file(options: argparse.Namespace) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What a model file holds, for programs and for people."""
    model = load_model(options)
    facts = describe_model(model)
    n_bytes = Path(options.model).stat().st_size
    tuning, ensemble = model.tuning_, model.ensemble_
    tuned = "not tuned: hyperparameters were given"
    if tuning is not None:
        complete = "" if tuning.is_complete else ", ended early"
        tuned = (
            f"by {tuning.objective}, loss {tuning.loss:.4g}, {len(tuning.candidates)} candidates "
            f"in {tuning.seconds:.1f} s{complete}"
        )
    rows = [
        ("File", f"{options.model}, {n_bytes / 1e6:.1f} MB"),
        ("Target", list_names(facts["targets"])),
        ("Inputs", list_names(facts["features"])),
    ]
    for k, each in enumerate(facts["encoding"]):
        shown = f"{each['column']}: {each['kind']}, {each['became']}"
        rows.append(("" if k else "Columns", shown))
    known = ensemble.georeference
    if known is not None:
        x, y = (facts["features"][column] for column in (known.x, known.y))
        crs = known.crs_name or "an unknown reference system"
        rows.append(("Coordinates", f"{x}, {y}, in {crs}"))
    heaviest = facts["models"][0]
    scales = zip(names_of_model_inputs(ensemble), heaviest["lengthscale"], strict=True)
    rows += [
        ("Training rows", f"{facts['n_train']:,}"),
        ("Tuning", tuned),
        *describe_models(model),
        ("Localizer", heaviest["localizer"]),
        ("Lengthscales", list_names(f"{name} {scale:.3g}" for name, scale in scales)),
        ("Noise variance", f"{heaviest['noise_variance']:.3g} of the signal variance"),
    ]
    return {"file": options.model, "n_bytes": n_bytes, **facts}, rows


def describe_model(model: Estimator) -> dict[str, Any]:
    """Names, sizes, hyperparameters and tuning of a fitted estimator."""
    tuning, ensemble = model.tuning_, model.ensemble_
    known, own, shape = ensemble.georeference, ensemble.classification, ensemble.shape
    tuned = None
    if tuning is not None:
        tuned = {"n_candidates": len(tuning.candidates)}
        tuned |= {name: getattr(tuning, name) for name in TUNING}
    return {
        "targets": names_of_targets(model),
        **({} if own is None else {"classes": own.class_names}),
        "features": input_names(ensemble),
        "n_train": ensemble.n_rows,
        "n_inputs": model.n_features_in_,
        "encoding": model.encoding_,
        "crs": None if known is None else known.crs,
        "models": [_describe(fitted) for fitted in model.fitted_],
        "scale_factor": model.scale_factor_,
        "tail": shape.tail,
        "contrast": shape.contrast,
        "is_noisy": shape.is_noisy,
        "tuning": tuned,
    }


def _describe(fitted: FittedModel) -> dict[str, Any]:
    model, kinds = fitted.model, fitted.transform.input_kinds
    return {
        "weight": fitted.weight,
        "kernel": str(model.kernel),
        "n_neighbors": fitted.n_neighbors,
        "input_transform": (kinds[0] if len(set(kinds)) == 1 else list(kinds)) or "untransformed",
        "scale": "local" if model.is_local_scale else "global",
        "lengthscale": fitted.lengthscale_of_inputs,
        **{name: getattr(model, name) for name in HYPERPARAMETERS},
    }


def describe_models(model: Estimator) -> list[tuple[str, str]]:
    """Lines with the table of the models that are combined, heaviest first."""
    table = [COLUMNS, *model_rows(model.ensemble_)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return [("" if k else "Models", line) for k, line in enumerate(lines)]
