# SPDX-License-Identifier: BSD-3-Clause
"""A bad setting is one error that names it."""

import numpy as np
import pytest
from small_regression import QUERIES, X, Y, raises, regressor

NAMES = "'rectangular', 'epanechnikov', 'gaussian', 'hilbert', 'smooth'"
KERNEL_NAMES = (
    "'auto', 'rbf', 'matern12', 'matern32', 'matern52', 'spherical', or a scikit-learn kernel "
    "object"
)
TREND = (
    "is neither one of 'none', 'constant', 'linear' nor a pair of prior variances (constant, "
    "slope), not negative and relative to signal_variance; inf is an unknown trend."
)
TRANSFORMS = "'standardize', 'yeo-johnson', 'half-rank'"
BACKENDS = "'auto', 'cpu', 'cuda', 'reference', 'cuda:0', 'cuda:all'"
POSITIVE = "must be positive and finite."
#: Values of each setting that are no good, and what is said of them after "name=value ".
BAD_VALUES = [
    ("kernel", ["cubic", None], f"is not one of {KERNEL_NAMES}."),
    ("localizer", ["flat"], f"is not one of {NAMES}."),
    ("n_neighbors", [0], "must be at least 1."),
    ("n_neighbors", [2.5, True], "is neither 'auto' nor a whole number."),
    ("localizer__bandwidth", [-1.0, np.inf], POSITIVE),
    ("localizer__bandwidth", ["wide"], "is neither 'adaptive', 'fixed' nor a radius."),
    ("localizer__decay", [-1], "must be zero or positive and finite."),
    (
        "trend",
        ["cubic"],
        "is not one of 'none', 'constant', 'linear', or a pair of prior variances.",
    ),
    ("trend", [(1, -1), ("a", 1), 3], TREND),
    (
        "objective",
        ["rmse"],
        "is not one of 'auto', 'crps', 'log_density', 'squared_error', 'marginal_likelihood', or "
        "None.",
    ),
    ("hyperparameters__scale", ["big"], "is not one of 'auto', 'local', 'global'."),
    ("hyperparameters__lengthscale", [-1.0, np.nan], POSITIVE),
    ("hyperparameters__signal_variance", [0.0], POSITIVE),
    ("hyperparameters__noise_variance", [-1.0, np.inf], POSITIVE),
    ("hyperparameters__scale_dof", [0.0], POSITIVE),
    ("input_transform", ["log"], f"is not one of 'auto', {TRANSFORMS}, a list of them, or None."),
    (
        "prior_mean",
        ["yes"],
        "is neither 'auto' nor a finite number. Give the mean of y far from all rows, or leave it "
        "out: it is then the mean of the rows.",
    ),
    ("search", ["quick"], "is not one of 'exact', 'approximate'."),
    ("effort", ["much"], "is not one of 'fast', 'balanced', 'best'."),
    ("backend", ["tpu"], f"is not one of {BACKENDS}. A device is named by its number."),
    ("dtype", ["float16"], "is not one of 'float64', 'float32'."),
]
#: The same of types.
BAD_TYPES = [
    (
        "hyperparameters__lengthscale",
        ["long"],
        "is not a number. Give a number, one per input, or None.",
    ),
    ("hyperparameters__noise_variance", ["low"], "is not a number. Give a number, or None."),
    (
        "input_transform",
        [3],
        "is neither a string nor a list. Give one string, one entry per input, or None.",
    ),
    ("effort__calibrate", [1], "is neither True nor False."),
    ("warm_start", ["yes"], "is neither True nor False."),
    ("localizer__normalized", [2], "is neither True nor False, nor 'paper'."),
    (
        "coordinates",
        ["sphere"],
        "is neither None, Sphere(longitude, latitude) nor Rotated(east, north). Give one of them.",
    ),
    (
        "hyperparameters",
        [{"lengthscale": 1.0}],
        "is neither None nor Hyperparameters(...). Give one of them.",
    ),
    ("localizer", [3], "is neither a word nor Localizer(...). Give one of them."),
]
JOBS = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
SIZE = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
PER_INPUT = "Give one string, or one entry per input."
#: What is said in another form.
OTHERS = [
    (
        "hyperparameters__lengthscale",
        [1, 2, 3],
        ValueError,
        "lengthscale has 3 values, but X has 2 inputs. Give one number, or one per input.",
    ),
    (
        "input_transform",
        ["standardize"],
        ValueError,
        f"input_transform has 1 entries, but X has 2 inputs. {PER_INPUT}",
    ),
    (
        "input_transform",
        [None, "log"],
        ValueError,
        f"input_transform='log' is not one of {TRANSFORMS}, or None.",
    ),
    ("n_jobs", 0, ValueError, f"n_jobs is 0, which leaves nobody to do the work. {JOBS}"),
    ("n_jobs", "all", TypeError, f"n_jobs is 'all', of type str. {JOBS}"),
    ("memory_budget", "big", ValueError, f"memory_budget is 'big', which is not a size. {SIZE}"),
    ("memory_budget", 0, ValueError, f"memory_budget is 0, less than one byte. {SIZE}"),
    ("memory_budget", 2.5, TypeError, f"memory_budget is 2.5, of type float. {SIZE}"),
]
BAD_SETTINGS = OTHERS + [
    (name, value, error, f"{name.rpartition('__')[2]}={value!r} {said}")
    for error, table in ((ValueError, BAD_VALUES), (TypeError, BAD_TYPES))
    for name, values, said in table
    for value in values
]


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    BAD_SETTINGS,
    ids=[f"{name}={value}" for name, value, *_ in BAD_SETTINGS],
)
def test_bad_setting_is_one_error_that_names_it(name, value, error, message):
    # The constructor only stores, and objects check themselves when they are made.
    with raises(error, message):
        regressor(**{name: value}).fit(X, Y).predict(QUERIES)


@pytest.mark.parametrize("kind", ["both", None])
def test_unknown_kind_of_prediction_is_refused(kind):
    model = regressor().fit(X, Y)
    for predict in (model.predict, model.predict_distribution, model.predict_interval):
        with raises(ValueError, f"kind={kind!r} is not one of 'observation', 'latent'."):
            predict(QUERIES, kind=kind)


def test_no_trend_is_written_as_none_or_as_its_name():
    by_name = regressor(trend="none").fit(X, Y).predict(QUERIES)
    assert np.array_equal(regressor(trend=None).fit(X, Y).predict(QUERIES), by_name)
