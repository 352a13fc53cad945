# SPDX-License-Identifier: BSD-3-Clause
"""What a model file can hold, exactly, and what it refuses."""

import copy
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk
from storage_cases import fit_case, make_data

from lsgp import LSGPRegressor, ModelFileError
from lsgp.storage.values import decode, encode

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NESTED = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(NESTED)
def test_values_survive_json_exactly(value):
    again = decode(json.loads(json.dumps(encode(value, "value"), allow_nan=False)))
    assert again == value
    assert repr(again) == repr(value)  # -0.0, and 1 rather than 1.0


@pytest.mark.parametrize(
    "value",
    [
        np.array([[0.1, math.inf], [-0.0, 5e-324]]),
        np.array([1, 2], np.int32),
        np.empty((0, 3)),
        np.array(["standardize", "x"]),
        np.array(["half-rank", None], dtype=object),
        np.array(3.5, np.float32),
        2.0 * sk.RBF([0.1, 1.0], "fixed") + sk.WhiteKernel(1e-5),
        sk.Matern(nu=math.inf) ** 2,
        sk.ExpSineSquared(periodicity_bounds=(1e-3, 10.0)) * sk.RationalQuadratic(),
        sk.PairwiseKernel(metric="polynomial", pairwise_kernels_kwargs={"degree": 2}),
        sk.CompoundKernel([sk.RBF(), sk.DotProduct()]),
    ],
    ids=str,
)
def test_arrays_and_kernels_survive_json_exactly(value):
    again = decode(json.loads(json.dumps(encode(value, "value"), allow_nan=False)))
    assert (type(again), repr(again)) == (type(value), repr(value))
    if isinstance(value, np.ndarray):
        assert (again.shape, again.dtype) == (value.shape, value.dtype)
        assert again.tolist() == value.tolist()
    else:
        assert again == value


class OwnKernel(sk.RBF):
    """A kernel that a model file cannot hold."""


@pytest.mark.parametrize("kernel", [OwnKernel(), sk.RBF() + OwnKernel()], ids=["itself", "a_part"])
def test_a_kernel_of_ones_own_is_refused_when_saving(kernel, model_path):
    X, y = make_data(50, None)
    model = LSGPRegressor(objective=None, kernel=kernel, backend="reference").fit(X, y)
    with pytest.raises(
        ModelFileError, match=r"kernel has a part of type test_storage_values\.OwnKernel"
    ):
        model.save(model_path)
    assert os.listdir(model_path.parent) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (print, r"verbose is .* which a model file cannot hold"),
        (10**400, "verbose is a whole number of more than 300"),
    ],
)
def test_settings_that_a_file_cannot_hold_are_refused_when_saving(model_path, value, message):
    model = copy.copy(fit_case("given"))
    model.verbose = value
    with pytest.raises(ModelFileError, match=message):
        model.save(model_path)


def test_an_estimator_that_is_not_fitted_is_not_saved(model_path):
    with pytest.raises(NotFittedError):
        LSGPRegressor().save(model_path)
    assert os.listdir(model_path.parent) == []
