# SPDX-License-Identifier: BSD-3-Clause
"""Whatever it is given, the estimator works or raises one error that says what to do."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lsgp import LSGPRegressor
from lsgp.localizers import LOCALIZERS


def regressor(**settings):
    return LSGPRegressor(**{"objective": None, "n_neighbors": 30, **settings})


def make_data(n=120, n_queries=9):
    rng = np.random.default_rng(31)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y, rng.uniform(-1.0, 1.0, (n_queries, 2))


X, Y, QUERIES = make_data()
MEAN, STD = regressor().fit(X, Y).predict(QUERIES, return_std=True)


def assert_same_predictions(model, queries, scale=1.0, rtol=1e-9):
    mean, std = model.predict(queries, return_std=True)
    np.testing.assert_allclose(mean / scale, MEAN, rtol=rtol)
    np.testing.assert_allclose(std / scale, STD, rtol=rtol)


def assert_sane(mean, std):
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()


def raises(error, message):
    return pytest.raises(error, match=f"^{re.escape(message)}$")


# ---- data that are odd, but fine ----


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_ten_thousand_equal_rows_average_their_targets(localizer):
    rng = np.random.default_rng(32)
    y = 5.0 + rng.normal(size=10_000)
    model = regressor(localizer=localizer, n_neighbors=200).fit(np.ones((10_000, 2)), y)
    mean, std = model.predict([[1.0, 1.0], [1.0, 2.0]], return_std=True)
    assert_sane(mean, std)
    # Of equal distances, the first rows are the neighbors.
    assert mean == pytest.approx(y[:200].mean(), abs=0.02)
    assert std == pytest.approx(1.0, abs=0.2)


def test_equal_rows_with_equal_targets_predict_that_target():
    model = regressor().fit(np.ones((1000, 3)), np.full(1000, 7.0))
    mean, std = model.predict(np.ones((2, 3)), return_std=True)
    assert mean == pytest.approx(7.0)
    assert_sane(mean, std)


def test_constant_column_changes_nothing_but_the_default_lengthscale():
    def pad(Z):
        return np.column_stack([Z, np.full(len(Z), 7.0)])

    model = regressor(lengthscale=np.sqrt(2.0)).fit(pad(X), Y)
    assert_same_predictions(model, pad(QUERIES))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_few_rows_are_enough(n, localizer, scale):
    model = regressor(localizer=localizer, scale=scale).fit(X[:n], Y[:n])
    mean, std = model.predict(QUERIES, return_std=True)
    assert_sane(mean, std)
    if n == 1:
        assert mean == pytest.approx(Y[0])
    assert model.n_neighbors_ == n


def test_more_neighbors_than_rows_are_all_rows():
    mean = regressor(n_neighbors=len(X)).fit(X, Y).predict(QUERIES)
    assert np.array_equal(regressor(n_neighbors=10**9).fit(X, Y).predict(QUERIES), mean)


@pytest.mark.parametrize("scale_y", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize("scale_x", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_units_do_not_matter(scale_x, scale_y, dtype):
    model = regressor(dtype=dtype).fit(scale_x * X, scale_y * Y)
    rtol = 1e-9 if dtype == "float64" else 1e-4
    assert_same_predictions(model, scale_x * QUERIES, scale_y, rtol=rtol)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_units_do_not_matter_without_transforms(scale):
    bare = {"input_transform": None, "normalize_y": False, "scale": "global"}
    expected = regressor(lengthscale=1.0, **bare).fit(X, Y).predict(QUERIES, return_std=True)
    model = regressor(lengthscale=scale, signal_variance=scale**2, **bare)
    actual = model.fit(scale * X, scale * Y).predict(scale * QUERIES, return_std=True)
    np.testing.assert_allclose(np.divide(actual, scale), expected, rtol=1e-9)


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize("value", [1e150, -1e150, 1e-150, 0.0])
def test_one_extreme_value_does_no_harm(where, value):
    changed, targets = X.copy(), Y.copy()
    if where == "X":
        changed[5, 0] = value
    else:
        targets[5] = value
    assert_sane(*regressor().fit(changed, targets).predict(QUERIES, return_std=True))


def test_query_far_away_is_the_prior():
    model = regressor(trend="none", scale="global", signal_variance=2.0, noise_variance=0.5)
    model.fit(X, Y)
    far = [[1e3, 0.0], [1e150, 0.0], [1e200, -1e200], [1.7e308, 1.7e308]]
    mean, std = model.predict(far, return_std=True)
    assert mean == pytest.approx(Y.mean())
    assert std == pytest.approx(np.sqrt(2.0 * 1.5) * Y.std())


def test_nobody_within_the_bandwidth_is_the_prior():
    model = regressor(bandwidth=0.1, trend="none", scale="global", noise_variance=0.5).fit(X, Y)
    for queries in ([[50.0, 50.0]], [[50.0, 50.0], [-70.0, 3.0]]):
        mean, std = model.predict(queries, return_std=True)
        assert mean == pytest.approx(Y.mean())
        assert std == pytest.approx(np.sqrt(1.5) * Y.std())


def test_offset_of_the_inputs_does_not_matter():
    assert_same_predictions(regressor().fit(X + 1e6, Y), QUERIES + 1e6, rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        float,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.floats(-1e150, 1e150, allow_subnormal=False),
    ),
    y_scale=st.sampled_from([1e-150, 1.0, 1e150]),
    localizer=st.sampled_from(sorted(LOCALIZERS)),
    seed=st.integers(0, 2**16),
)
def test_predictions_are_finite_for_any_finite_data(X, y_scale, localizer, seed):
    y = y_scale * np.random.default_rng(seed).normal(size=len(X))
    model = regressor(localizer=localizer, n_neighbors=7).fit(X, y)
    assert_sane(*model.predict(np.vstack([X, 0.5 * X, np.zeros_like(X)]), return_std=True))


# ---- containers ----


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


CONTAINERS = {
    "list": lambda array: array.tolist(),
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    "reversed": lambda array: array[::-1].copy()[::-1],
    "object": lambda array: array.astype(object),
    "big-endian": lambda array: array.astype(">f8"),
    "strings of numbers": lambda array: array.astype(str).astype(object),
}


@pytest.mark.parametrize("convert", CONTAINERS.values(), ids=CONTAINERS)
def test_same_numbers_in_any_container(convert):
    model = regressor().fit(convert(X), convert(Y))
    assert_same_predictions(model, convert(QUERIES), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.bool_])
def test_other_dtypes_are_the_numbers_they_hold(dtype):
    coarse_X, coarse_y, coarse_q = ((10.0 * array).astype(dtype) for array in (X, Y, QUERIES))
    actual = regressor().fit(coarse_X, coarse_y).predict(coarse_q)
    same = (array.astype(float) for array in (coarse_X, coarse_y))
    assert actual.dtype == np.float64
    assert np.array_equal(actual, regressor().fit(*same).predict(coarse_q.astype(float)))


def test_column_vector_of_targets_is_one_target_in_a_column():
    mean, std = regressor().fit(X, Y[:, None]).predict(QUERIES, return_std=True)
    assert np.array_equal(mean, MEAN[:, None])
    assert np.array_equal(std, STD[:, None])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_keep_their_column_names(frame):
    training = frame({"east": X[:, 0], "north": X[:, 1]})
    targets = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}[frame](Y)
    model = regressor().fit(training, targets)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert_same_predictions(model, frame({"east": QUERIES[:, 0], "north": QUERIES[:, 1]}))
    order = "Feature names must be in the same order as they were in fit."
    with pytest.raises(ValueError, match=re.escape(order)):
        model.predict(frame({"north": QUERIES[:, 1], "east": QUERIES[:, 0]}))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- height"):
        model.predict(frame({"east": QUERIES[:, 0], "height": QUERIES[:, 1]}))


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_no_queries_give_no_predictions(n_targets):
    shape = () if n_targets is None else (n_targets,)
    targets = Y if n_targets is None else np.column_stack([Y] * n_targets)
    model = regressor().fit(X, targets)
    nobody = np.empty((0, 2))
    assert model.predict(nobody).shape == (0, *shape)
    assert [part.shape for part in model.predict(nobody, return_std=True)] == [(0, *shape)] * 2
    assert [part.shape for part in model.predict_interval(nobody)] == [(0, *shape)] * 2


# ---- data that are refused ----


def with_value(array, value):
    array = array.copy()
    array[3] = value
    return array


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.nan, "contains NaN."),
        (np.inf, "contains infinity or a value too large for dtype('float64')."),
        (-np.inf, "contains infinity or a value too large for dtype('float64')."),
    ],
)
def test_values_that_are_not_finite_are_refused(value, text):
    with pytest.raises(ValueError, match="^" + re.escape(f"Input X {text}")):
        regressor().fit(with_value(X, value), Y)
    with pytest.raises(ValueError, match="^" + re.escape(f"Input y {text}")):
        regressor().fit(X, with_value(Y, value))
    with pytest.raises(ValueError, match="^" + re.escape(f"Input X {text}")):
        regressor().fit(X, Y).predict(with_value(QUERIES, value))


@pytest.mark.parametrize(
    ("bad_X", "bad_y", "error", "text"),
    [
        (np.full((120, 2), "a", object), Y, ValueError, "could not convert string to float: 'a'"),
        (X, np.full(120, "a", object), ValueError, "could not convert string to float: 'a'"),
        (X[:, 0], Y, ValueError, "Expected 2D array, got 1D array instead"),
        (X[None], Y, ValueError, "Found array with dim 3"),
        (X[:0], Y[:0], ValueError, "Found array with 0 sample(s) (shape=(0, 2))"),
        (X[:, :0], Y, ValueError, "0 feature(s) (shape=(120, 0)) while a minimum of 1"),
        (X, Y[:7], ValueError, "inconsistent numbers of samples: [120, 7]"),
        (X, np.zeros((120, 2, 2)), ValueError, "Found array with dim 3"),
        (X, None, ValueError, "requires y to be passed, but the target y is None"),
        (X + 1j, Y, ValueError, "Complex data not supported"),
        (sparse.csr_array(X), Y, TypeError, "Sparse data was passed for X, but dense data is"),
    ],
    ids=[
        "text",
        "text y",
        "1d",
        "3d",
        "no rows",
        "no columns",
        "lengths",
        "3d y",
        "no y",
        "complex",
        "sparse",
    ],
)
def test_training_data_of_the_wrong_kind_are_refused(bad_X, bad_y, error, text):
    with pytest.raises(error, match=re.escape(text)):
        regressor().fit(bad_X, bad_y)


@pytest.mark.parametrize(
    ("queries", "error", "text"),
    [
        (QUERIES[:, :1], ValueError, "X has 1 features, but LSGPRegressor is expecting 2 features"),
        (QUERIES[0], ValueError, "Expected 2D array, got 1D array instead"),
        (np.full((3, 2), "a", object), ValueError, "could not convert string to float: 'a'"),
        (sparse.csr_array(QUERIES), TypeError, "Sparse data was passed for X, but dense data is"),
    ],
    ids=["width", "1d", "text", "sparse"],
)
def test_queries_of_the_wrong_kind_are_refused(queries, error, text):
    with pytest.raises(error, match=re.escape(text)):
        regressor().fit(X, Y).predict(queries)


def test_model_that_is_not_fitted_says_so():
    message = "This LSGPRegressor instance is not fitted yet. Call 'fit'"
    for use in (
        lambda model: model.predict(QUERIES),
        lambda model: model.predict(QUERIES, return_std=True),
        lambda model: model.predict_distribution(QUERIES),
        lambda model: model.predict_interval(QUERIES),
        lambda model: model.sample_prior([0.0, 0.0], QUERIES),
        lambda model: model.model_,
        lambda model: model.n_neighbors_,
    ):
        with pytest.raises(NotFittedError, match=re.escape(message)):
            use(regressor())


# ---- weights and known noise ----


@pytest.mark.parametrize("has_known_noise", [False, True])
def test_weight_zero_equals_removing_the_row(has_known_noise):
    rng = np.random.default_rng(33)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = weight > 0
    noise = np.where(kept, rng.uniform(0.05, 0.2, len(X)), 100.0) if has_known_noise else None
    expected = regressor().fit(
        X[kept], Y[kept], weight[kept], noise_variance=noise[kept] if has_known_noise else None
    )
    actual = regressor().fit(X, Y, sample_weight=weight, noise_variance=noise)
    for one, other in zip(
        actual.predict(QUERIES, return_std=True),
        expected.predict(QUERIES, return_std=True),
        strict=True,
    ):
        assert np.array_equal(one, other)


def test_weight_of_one_row_is_a_number_of_observations():
    # As many copies, where the copies change neither the neighborhood nor the scaling.
    settings = {
        "localizer": "rectangular",
        "bandwidth": 2.5,
        "input_transform": None,
        "normalize_y": False,
        "scale": "global",
    }
    weight = np.where(np.arange(len(X)) % 7 == 0, 3, 1)
    copies = regressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    weighted = regressor(**settings).fit(X, Y, sample_weight=weight)
    for one, other in zip(
        weighted.predict(QUERIES, return_std=True),
        copies.predict(QUERIES, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        (
            "sample_weight",
            with_value(np.ones(120), -1.0),
            ValueError,
            "sample_weight has 1 negative values. A weight says how many observations a row stands "
            "for.",
        ),
        (
            "sample_weight",
            with_value(np.ones(120), np.nan),
            ValueError,
            "sample_weight has 1 values that are NaN or infinite. Remove those rows.",
        ),
        (
            "sample_weight",
            np.zeros(120),
            ValueError,
            "sample_weight is zero in every row. Give at least one row a weight.",
        ),
        (
            "sample_weight",
            np.ones(7),
            ValueError,
            "sample_weight has shape (7,), but X has 120 rows. Give one number per row.",
        ),
        (
            "sample_weight",
            ["a"] * 120,
            TypeError,
            "sample_weight is not an array of numbers: could not convert string to float: 'a'.",
        ),
        (
            "noise_variance",
            with_value(np.ones(120), 0.0),
            ValueError,
            "noise_variance has 1 values that are not positive. Give the variance of each "
            "observation's error, in the units of y².",
        ),
        (
            "noise_variance",
            with_value(np.ones(120), np.inf),
            ValueError,
            "noise_variance has 1 values that are NaN or infinite. Remove those rows.",
        ),
        (
            "groups",
            np.zeros(7),
            ValueError,
            "groups has shape (7,), but X has 120 rows. Give one label per row.",
        ),
    ],
)
def test_what_comes_with_the_rows_is_checked(name, value, error, message):
    with raises(error, message):
        regressor().fit(X, Y, **{name: value})


# ---- settings ----

NAMES = "'rectangular', 'epanechnikov', 'gaussian', 'hilbert', 'smooth'"
KERNEL_NAMES = "'auto', 'rbf', 'matern12', 'matern32', 'matern52', or a scikit-learn kernel object"
TREND = (
    "is neither one of 'none', 'constant', 'linear' nor a pair of prior variances (constant, "
    "slope), not negative and relative to signal_variance."
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
    ("bandwidth", -1.0, ValueError, "bandwidth=-1.0 must be positive and finite."),
    ("bandwidth", np.inf, ValueError, "bandwidth=inf must be positive and finite."),
    ("bandwidth", "wide", ValueError, "bandwidth='wide' is neither 'adaptive' nor a radius."),
    (
        "trend",
        "cubic",
        ValueError,
        "trend='cubic' is not one of 'none', 'constant', 'linear', or a pair of prior variances.",
    ),
    ("trend", (1, -1), ValueError, f"trend=(1, -1) {TREND}"),
    ("trend", ("a", 1), ValueError, f"trend=('a', 1) {TREND}"),
    ("trend", 3, ValueError, f"trend=3 {TREND}"),
    ("scale", "big", ValueError, "scale='big' is not one of 'auto', 'local', 'global'."),
    (
        "objective",
        "rmse",
        ValueError,
        "objective='rmse' is not one of 'auto', 'crps', 'log_density', 'squared_error', "
        "'marginal_likelihood', or None.",
    ),
    ("lengthscale", -1.0, ValueError, "lengthscale=-1.0 must be positive and finite."),
    ("lengthscale", np.nan, ValueError, "lengthscale=nan must be positive and finite."),
    (
        "lengthscale",
        [1, 2, 3],
        ValueError,
        "lengthscale has 3 values, but X has 2 inputs. Give one number, or one per input.",
    ),
    (
        "lengthscale",
        "long",
        TypeError,
        "lengthscale='long' is not a number. Give a number, one per input, or None.",
    ),
    ("signal_variance", 0.0, ValueError, "signal_variance=0.0 must be positive and finite."),
    ("noise_variance", -1.0, ValueError, "noise_variance=-1.0 must be positive and finite."),
    ("noise_variance", np.inf, ValueError, "noise_variance=inf must be positive and finite."),
    (
        "noise_variance",
        "low",
        TypeError,
        "noise_variance='low' is not a number. Give a number, or None.",
    ),
    ("localizer_decay", -1, ValueError, "localizer_decay=-1 must be zero or positive and finite."),
    ("scale_dof", 0.0, ValueError, "scale_dof=0.0 must be positive and finite."),
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
    ("normalize_y", "yes", TypeError, "normalize_y='yes' is neither True nor False."),
    ("normalize_localizer", 2, TypeError, "normalize_localizer=2 is neither True nor False."),
    ("backend", "tpu", ValueError, "backend='tpu' is not one of 'auto', 'cpu', 'reference'."),
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
    model = regressor(**{name: value})  # the constructor only stores
    with raises(error, message):
        model.fit(X, Y).predict(QUERIES)


@pytest.mark.parametrize("kind", ["both", None])
def test_unknown_kind_of_prediction_is_refused(kind):
    model = regressor().fit(X, Y)
    for predict in (model.predict, model.predict_distribution, model.predict_interval):
        with raises(ValueError, f"kind={kind!r} is not one of 'observation', 'latent'."):
            predict(QUERIES, kind=kind)
