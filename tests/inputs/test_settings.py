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
SIZE = "Pass a positive number of bytes, or a string such as '1GB' or '512MiB'."
JOBS = "Use None or 1 for one thread, -1 for all cores, or a number of threads."
TRANSFORMS = "'standardize', 'yeo-johnson', 'half-rank'"
BAD_SETTINGS = [
    ("kernel", "cubic", ValueError, f"kernel='cubic' is not one of {KERNEL_NAMES}."),
    ("kernel", None, ValueError, f"kernel=None is not one of {KERNEL_NAMES}."),
    ("localizer", "flat", ValueError, f"localizer='flat' is not one of {NAMES}."),
    ("n_neighbors", 0, ValueError, "n_neighbors=0 must be at least 1."),
    ("n_neighbors", 2.5, ValueError, "n_neighbors=2.5 is neither 'auto' nor a whole number."),
    ("n_neighbors", True, ValueError, "n_neighbors=True is neither 'auto' nor a whole number."),
    ("localizer__bandwidth", -1.0, ValueError, "bandwidth=-1.0 must be positive and finite."),
    ("localizer__bandwidth", np.inf, ValueError, "bandwidth=inf must be positive and finite."),
    (
        "localizer__bandwidth",
        "wide",
        ValueError,
        "bandwidth='wide' is neither 'adaptive', 'fixed' nor a radius.",
    ),
    (
        "trend",
        "cubic",
        ValueError,
        "trend='cubic' is not one of 'none', 'constant', 'linear', or a pair of prior variances.",
    ),
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
        "lengthscale=-1.0 must be positive and finite.",
    ),
    (
        "hyperparameters__lengthscale",
        np.nan,
        ValueError,
        "lengthscale=nan must be positive and finite.",
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
        TypeError,
        "lengthscale='long' is not a number. Give a number, one per input, or None.",
    ),
    (
        "hyperparameters__signal_variance",
        0.0,
        ValueError,
        "signal_variance=0.0 must be positive and finite.",
    ),
    (
        "hyperparameters__noise_variance",
        -1.0,
        ValueError,
        "noise_variance=-1.0 must be positive and finite.",
    ),
    (
        "hyperparameters__noise_variance",
        np.inf,
        ValueError,
        "noise_variance=inf must be positive and finite.",
    ),
    (
        "hyperparameters__noise_variance",
        "low",
        TypeError,
        "noise_variance='low' is not a number. Give a number, or None.",
    ),
    ("localizer__decay", -1, ValueError, "decay=-1 must be zero or positive and finite."),
    ("hyperparameters__scale_dof", 0.0, ValueError, "scale_dof=0.0 must be positive and finite."),
    (
        "input_transform",
        "log",
        ValueError,
        f"input_transform='log' is not one of 'auto', {TRANSFORMS}, a list of them, or None.",
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
        f"input_transform='log' is not one of {TRANSFORMS}, or None.",
    ),
    (
        "input_transform",
        3,
        TypeError,
        "input_transform=3 is neither a string nor a list. Give one string, one entry per input, "
        "or None.",
    ),
    ("effort__calibrate", 1, TypeError, "calibrate=1 is neither True nor False."),
    (
        "prior_mean",
        "yes",
        ValueError,
        "prior_mean='yes' is neither 'auto' nor a finite number. Give the mean of y far from all "
        "rows, or leave it out: it is then the mean of the rows.",
    ),
    ("search", "quick", ValueError, "search='quick' is not one of 'exact', 'approximate'."),
    ("warm_start", "yes", TypeError, "warm_start='yes' is neither True nor False."),
    (
        "coordinates",
        "sphere",
        TypeError,
        "coordinates='sphere' is neither None, Sphere(longitude, latitude) nor Rotated(east, "
        "north). Give one of them.",
    ),
    (
        "hyperparameters",
        {"lengthscale": 1.0},
        TypeError,
        "hyperparameters={'lengthscale': 1.0} is neither None nor Hyperparameters(...). Give one "
        "of them.",
    ),
    (
        "localizer",
        3,
        TypeError,
        "localizer=3 is neither a word nor Localizer(...). Give one of them.",
    ),
    (
        "effort",
        "much",
        ValueError,
        "effort='much' is not one of 'fast', 'balanced', 'best'.",
    ),
    (
        "localizer__normalized",
        2,
        TypeError,
        "normalized=2 is neither True nor False, nor 'paper'.",
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
