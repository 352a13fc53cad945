# SPDX-License-Identifier: BSD-3-Clause
"""A bad setting is one error that names it."""

import numpy as np
import pytest
from small_regression import QUERIES, X, Y, raises, regressor

LOCALIZERS = "'smooth', 'epanechnikov', 'gaussian', 'hilbert', 'rectangular'"
KERNELS = "'auto', 'rbf', 'matern12', 'matern32', 'matern52', 'spherical' nor a scikit-learn kernel"
TREND = (
    "is neither 'linear', 'constant', 'none' nor a pair of prior variances (constant, slope), not "
    "negative and relative to signal_variance, where inf is an unknown trend."
)
OBJECTIVES = "'auto', 'crps', 'log_density', 'squared_error', 'marginal_likelihood'"
TRANSFORMS = "'standardize', 'yeo-johnson', 'half-rank'"
BACKENDS = "'auto', 'cpu', 'cuda', 'reference', 'cuda:0', 'cuda:all'"
POSITIVE = "must be a positive, finite number, or None."
YES_OR_NO = "must be True or False."
COORDINATES = "must be Sphere(longitude, latitude) or Rotated(east, north), or None."
RADIUS = "is neither 'adaptive', 'fixed' nor a positive, finite number."
LENGTHS = "must be a positive, finite number, or one per input, or None."
MEAN = "is neither 'auto' nor a finite number, the mean of y far from all rows."
#: Values of each setting that are no good, and what is said of them after "name=value ".
BAD_VALUES = [
    ("kernel", ["cubic", None], f"is neither {KERNELS}."),
    ("localizer", ["flat", 3], f"is neither {LOCALIZERS} nor Localizer(...)."),
    ("n_neighbors", [0, 2.5, True], "is neither 'auto' nor a whole number of at least 1."),
    ("localizer__bandwidth", [-1.0, np.inf, "wide"], RADIUS),
    ("localizer__decay", [-1], "must be zero or a positive, finite number, or None."),
    ("localizer__normalized", [2], "is neither 'paper' nor True or False."),
    ("trend", ["cubic", (1, -1), ("a", 1), 3], TREND),
    ("objective", ["rmse"], f"is not one of {OBJECTIVES}, or None."),
    ("hyperparameters", [{"lengthscale": 1.0}], "must be Hyperparameters(...), or None."),
    ("hyperparameters__scale", ["big"], "is not one of 'auto', 'local', 'global'."),
    ("hyperparameters__lengthscale", [-1.0, np.nan, "long"], LENGTHS),
    ("hyperparameters__signal_variance", [0.0], POSITIVE),
    ("hyperparameters__noise_variance", [-1.0, np.inf, "low"], POSITIVE),
    ("hyperparameters__scale_dof", [0.0], POSITIVE),
    (
        "input_transform",
        ["log", [None, "log"], 3],
        f"is neither 'auto', {TRANSFORMS} nor a list of them, or None.",
    ),
    ("prior_mean", ["yes", np.inf], MEAN),
    ("search", ["quick"], "is not one of 'exact', 'approximate'."),
    ("effort", ["much"], "is neither 'fast', 'balanced', 'best' nor Effort(...)."),
    ("effort__calibrate", [1], YES_OR_NO),
    ("warm_start", ["yes"], YES_OR_NO),
    ("coordinates", ["sphere"], COORDINATES),
    ("backend", ["tpu"], f"is not one of {BACKENDS}. A device is named by its number."),
    ("dtype", ["float16"], "is not one of 'float64', 'float32'."),
    # Numbers whose squares or products are no numbers.
    ("localizer__bandwidth", [1e200], "must be between 1e-150 and 1e+150."),
    ("hyperparameters__lengthscale", [1e-300], "must be between 1e-150 and 1e+150."),
    ("hyperparameters__signal_variance", [1e307], "must be between 1e-300 and 1e+300."),
    ("hyperparameters__noise_variance", [1e307], "must be between 0 and 1e+300."),
    ("trend", [(1e200, 0.0)], "must have prior variances of at most 1e+100, or inf."),
]
JOBS = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
SIZE = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
#: What is said in another form.
OTHERS = [
    (
        "hyperparameters__lengthscale",
        [1, 2, 3],
        "lengthscale has 3 values, but X has 2 inputs. Give one number, or one per input.",
    ),
    (
        "input_transform",
        ["standardize"],
        "input_transform has 1 entries, but X has 2 inputs. Give one string, or one entry per "
        "input.",
    ),
    ("n_jobs", 0, f"n_jobs is 0, which leaves nobody to do the work. {JOBS}"),
    ("n_jobs", "all", f"n_jobs is 'all', of type str. {JOBS}"),
    ("memory_budget", "big", f"memory_budget is 'big', which is not a size. {SIZE}"),
    ("memory_budget", 0, f"memory_budget is 0, less than one byte. {SIZE}"),
    ("memory_budget", 2.5, f"memory_budget is 2.5, of type float. {SIZE}"),
]
BAD_SETTINGS = OTHERS + [
    (name, value, f"{name.rpartition('__')[2]}={value!r} {said}")
    for name, values, said in BAD_VALUES
    for value in values
]


@pytest.mark.parametrize(
    ("name", "value", "message"), BAD_SETTINGS, ids=[f"{n}={value}" for n, value, _ in BAD_SETTINGS]
)
def test_bad_setting_is_one_error_that_names_it(name, value, message):
    # The constructor only stores, and objects check themselves when they are made.
    with raises((ValueError, TypeError), message):
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
