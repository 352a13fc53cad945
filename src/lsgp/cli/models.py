# SPDX-License-Identifier: BSD-3-Clause
"""The estimator of a command, saved or new. It needs no tables, nor what reads them."""

from __future__ import annotations

import argparse
from typing import Any

from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, require_file
from lsgp.cli.options import given_coordinates, given_settings, refuse_settings_of_numbers
from lsgp.compute.threads import parse_memory_budget
from lsgp.ensemble.view import target_names
from lsgp.storage.estimator import saved_class

#: What `lsgp fit` saves.
Estimator = LSGPRegressor | LSGPClassifier


def load_model(options: argparse.Namespace) -> Estimator:
    """The model of a command, set to the threads and the memory that the options allow."""
    require_file(options.model)
    is_of_labels = saved_class(options.model) == LSGPClassifier.__name__
    model: Estimator = (LSGPClassifier if is_of_labels else LSGPRegressor).load(options.model)
    model.verbose = 0
    if hasattr(options, "jobs"):
        model.n_jobs = options.jobs
        parse_memory_budget(options.memory_budget)
        model.memory_budget = options.memory_budget
    return model


def make_estimator(
    options: argparse.Namespace, voice: Voice, n_inputs: int | None = None, of_labels: bool = False
) -> Estimator:
    """A new estimator with the settings that the options give, checked before any row is read."""
    parse_memory_budget(options.memory_budget)
    settings = given_settings(options)
    if getattr(options, "categorical", None):
        settings["categorical_features"] = list(options.categorical)
    settings["coordinates"] = given_coordinates(options)
    if of_labels:
        refuse_settings_of_numbers(settings)
    model: Estimator = (LSGPClassifier if of_labels else LSGPRegressor)(
        n_jobs=options.jobs,
        memory_budget=options.memory_budget,
        verbose=int(voice.shows_progress),
    ).set_params(**settings)
    if n_inputs is not None:
        model.check_settings(n_inputs)
    return model


def names_of_targets(model: Estimator) -> list[str]:
    """The names of the columns that the model predicts."""
    own = model.ensemble_.classification
    return target_names(model.ensemble_) if own is None else [own.label_name or "y"]


def asked_of_spread(model: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The level of intervals and the kind of spread that predictions shall have.

    Nothing for labels, of which there is neither: CommandError if options ask for one.
    """
    if model.ensemble_.classification is None:
        return {"level": options.level or 0.9, "kind": options.kind or "observation"}
    for name in ("level", "kind"):
        if getattr(options, name) is not None:
            raise CommandError(f"--{name} is for numbers, and the model predicts labels.")
    return {}
