# SPDX-License-Identifier: BSD-3-Clause
"""A bad setting is one error that names it."""

import numpy as np
import pytest
from small_regression import QUERIES, X, Y, raises, regressor

NAMES = "'smooth', 'epanechnikov', 'gaussian', 'hilbert', 'rectangular'"
KERNEL_NAMES = (
    "'auto', 'rbf', 'matern12', 'matern32', 'matern52', 'spherical' nor a scikit-learn kernel"
)
TREND = (
    "is neither 'linear', 'constant', 'none' nor a pair of prior variances (constant, slope), not "
    "negative and relative to signal_variance, where inf is an unknown trend, or None."
)
WHOLE = "is neither 'auto' nor a whole number of at least 1."
BANDWIDTH = "is neither 'adaptive', 'fixed' nor a positive, finite number."
POSITIVE = "must be a positive, finite number, or None."
LENGTHS = "must be a positive, finite number, or one per input, or None."
SIZE = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
JOBS = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
TRANSFORMS = "'standardize', 'yeo-johnson', 'half-rank'"
BAD_SETTINGS = [
    ("kernel", "cubic", ValueError, f"kernel='cubic' is neither {KERNEL_NAMES}."),
    ("kernel", None, ValueError, f"kernel=None is neither {KERNEL_NAMES}."),
    ("localizer", "flat", ValueError, f"localizer='flat' is neither {NAMES} nor Localizer(...)."),
    ("n_neighbors", 0, ValueError, f"n_neighbors=0 {WHOLE}"),
    ("n_neighbors", 2.5, ValueError, f"n_neighbors=2.5 {WHOLE}"),
    ("n_neighbors", True, ValueError, f"n_neighbors=True {WHOLE}"),
    ("localizer__bandwidth", -1.0, ValueError, f"bandwidth=-1.0 {BANDWIDTH}"),
    ("localizer__bandwidth", np.inf, ValueError, f"bandwidth=inf {BANDWIDTH}"),
    ("localizer__bandwidth", "wide", ValueError, f"bandwidth='wide' {BANDWIDTH}"),
    ("trend", "cubic", ValueError, f"trend='cubic' {TREND}"),
    ("trend", (1, -1), ValueError, f"trend=(1, -1) {TREND}"),
    ("trend", ("a", 1), ValueError, f"trend=('a', 1) {TREND}"),
    ("trend", 3, ValueError, f"trend=3 {TREND}"),
    (
        "hyperparameters__scale",
        "big",
        ValueError,
        "scale='big' is not one of 'auto', 'local', 'global'.",
    ),
    (
        "objective",
        "rmse",
        ValueError,
        "objective='rmse' is not one of 'auto', 'crps', 'log_density', 'squared_error', "
        "'marginal_likelihood', or None.",
    ),
    (
        "hyperparameters__lengthscale",
        -1.0,
        ValueError,
        f"lengthscale=-1.0 {LENGTHS}",
    ),
    (
        "hyperparameters__lengthscale",
        np.nan,
        ValueError,
        f"lengthscale=nan {LENGTHS}",
    ),
    (
        "hyperparameters__lengthscale",
        [1, 2, 3],
        ValueError,
        "lengthscale has 3 values, but X has 2 inputs. Give one number, or one per input.",
    ),
    (
        "hyperparameters__lengthscale",
        "long",
        ValueError,
        f"lengthscale='long' {LENGTHS}",
    ),
    (
        "hyperparameters__signal_variance",
        0.0,
        ValueError,
        f"signal_variance=0.0 {POSITIVE}",
    ),
    (
        "hyperparameters__noise_variance",
        -1.0,
        ValueError,
        f"noise_variance=-1.0 {POSITIVE}",
    ),
    (
        "hyperparameters__noise_variance",
        np.inf,
        ValueError,
        f"noise_variance=inf {POSITIVE}",
    ),
    (
        "hyperparameters__noise_variance",
        "low",
        ValueError,
        f"noise_variance='low' {POSITIVE}",
    ),
    (
        "localizer__decay",
        -1,
        ValueError,
        "decay=-1 must be zero or a positive, finite number, or None.",
    ),
    ("hyperparameters__scale_dof", 0.0, ValueError, f"scale_dof=0.0 {POSITIVE}"),
    (
        "input_transform",
        "log",
        ValueError,
        f"input_transform='log' is neither 'auto', {TRANSFORMS} nor a list of them, or None.",
    ),
    (
        "input_transform",
        ["standardize"],
        ValueError,
        "input_transform has 1 entries, but X has 2 inputs. Give one string, or one entry per "
        "input.",
    ),
    (
        "input_transform",
        [None, "log"],
        ValueError,
        f"input_transform=[None, 'log'] is neither 'auto', {TRANSFORMS} nor a list of them, or "
        "None.",
    ),
    (
        "input_transform",
        3,
        ValueError,
        f"input_transform=3 is neither 'auto', {TRANSFORMS} nor a list of them, or None.",
    ),
    ("effort__calibrate", 1, ValueError, "calibrate=1 must be True or False."),
    (
        "prior_mean",
        "yes",
        ValueError,
        "prior_mean='yes' is neither 'auto' nor a finite number, the mean of y far from all rows.",
    ),
    ("search", "quick", ValueError, "search='quick' is not one of 'exact', 'approximate'."),
    ("warm_start", "yes", ValueError, "warm_start='yes' must be True or False."),
    (
        "coordinates",
        "sphere",
        ValueError,
        "coordinates='sphere' must be Sphere(longitude, latitude) or Rotated(east, north), or "
        "None.",
    ),
    (
        "hyperparameters",
        {"lengthscale": 1.0},
        ValueError,
        "hyperparameters={'lengthscale': 1.0} must be Hyperparameters(...), or None.",
    ),
    ("localizer", 3, ValueError, f"localizer=3 is neither {NAMES} nor Localizer(...)."),
    (
        "effort",
        "much",
        ValueError,
        "effort='much' is neither 'fast', 'balanced', 'best' nor Effort(...).",
    ),
    (
        "localizer__normalized",
        2,
        ValueError,
        "normalized=2 is neither 'paper' nor True or False.",
    ),
    (
        "backend",
        "tpu",
        ValueError,
        "backend='tpu' is not one of 'auto', 'cpu', 'cuda', 'reference', 'cuda:0', "
        "'cuda:all'. A device is named by its number.",
    ),
    ("dtype", "float16", ValueError, "dtype='float16' is not one of 'float64', 'float32'."),
    ("n_jobs", 0, ValueError, f"n_jobs is 0, which leaves nobody to do the work. {JOBS}"),
    ("n_jobs", "all", TypeError, f"n_jobs is 'all', of type str. {JOBS}"),
    ("memory_budget", "big", ValueError, f"memory_budget is 'big', which is not a size. {SIZE}"),
    ("memory_budget", 0, ValueError, f"memory_budget is 0, less than one byte. {SIZE}"),
    ("memory_budget", 2.5, TypeError, f"memory_budget is 2.5, of type float. {SIZE}"),
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
