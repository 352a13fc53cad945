# SPDX-License-Identifier: BSD-3-Clause
"""The saved model of a command. It needs no tables, nor what reads them."""

from __future__ import annotations

import argparse
from pathlib import Path

from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.cli.files import missing_file
from lsgp.compute.memory import parse_memory_budget
from lsgp.storage.estimator import saved_class

#: What `lsgp fit` saves.
Estimator = LSGPRegressor | LSGPClassifier


def load_model(options: argparse.Namespace) -> Estimator:
    """The model of a command, set to the threads and the memory that the options allow."""
    if not Path(options.model).exists():
        raise missing_file(options.model)
    is_of_labels = saved_class(options.model) == LSGPClassifier.__name__
    model: Estimator = (LSGPClassifier if is_of_labels else LSGPRegressor).load(options.model)
    model.verbose = 0
    if hasattr(options, "jobs"):
        model.n_jobs = options.jobs
        parse_memory_budget(options.memory_budget)
        model.memory_budget = options.memory_budget
    return model
