# SPDX-License-Identifier: BSD-3-Clause
"""The native core refuses arguments that it was not made for."""

import numpy as np
import pytest
from backend_checks import BACKENDS_HERE, PLAIN, each_core, each_dtype
from cases import as_dtype, make_instance

from lsgp.backends import cpu
from lsgp.backends.contract import SystemSize
from lsgp.method.contract import OBJECTIVES
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS


def problem_arguments(problem):
    X, y, noise, _ = problem
    return {"X": X, "y": y, "noise": noise, "model": cpu._pack(problem, False)[3]}


def predict_arguments(core, dtype):
    """Arguments of the native predict, by name and in order."""
    instance = as_dtype(make_instance(PLAIN), dtype)
    return getattr(core, f"predict_{dtype}"), {
        **problem_arguments(instance.problem),
        "queries": instance.queries,
        "points": np.zeros((3, 2, instance.queries.shape[1]), dtype),
        "neighbors": instance.neighbors,
        "mean": np.empty((3, 1), dtype),
        "variance": np.empty(3, dtype),
        "scale": np.empty((3, 1), dtype),
        "dof": np.empty(3, dtype),
        "status": np.empty(3, np.int32),
    }


def differentiate_arguments(core, dtype):
    _, values = predict_arguments(core, dtype)
    del values["points"]
    return getattr(core, f"differentiate_{dtype}"), {
        **values,
        "mean_by_query": np.empty((3, 1, 2), dtype),
        "variance_by_query": np.empty((3, 2), dtype),
        "scale_by_query": np.empty((3, 1, 2), dtype),
        "dof_by_query": np.empty((3, 2), dtype),
        "noise_unit_by_query": np.empty((3, 2), dtype),
    }


def coefficients_arguments(core, dtype):
    instance = as_dtype(make_instance(PLAIN), dtype)
    return getattr(core, f"coefficients_{dtype}"), {
        **problem_arguments(instance.problem),
        "queries": instance.queries,
        "neighbors": instance.neighbors,
        "beta": np.empty(instance.neighbors.shape, dtype),
        "weight": np.empty(instance.neighbors.shape, dtype),
        "variance": np.empty(3, dtype),
        "status": np.empty(3, np.int32),
    }


def score_arguments(core, dtype):
    instance = as_dtype(make_instance(PLAIN), dtype)
    return getattr(core, f"score_{dtype}"), {
        **problem_arguments(instance.problem),
        "targets": instance.targets,
        "neighbors": instance.target_neighbors,
        "objective": 0,
        "loss": np.empty(3),
        "gradient": np.empty((3, 8)),
        "status": np.empty(3, np.int32),
    }


ROWS = {"y": "y must have as many rows as X", "noise": "noise must have as many rows as X"}
PREDICTIONS = {
    **ROWS,
    "queries": "neighbors must have one row per query",
    "neighbors": "neighbors must have one row per query",
    **dict.fromkeys(
        ("mean", "variance", "scale", "dof", "status"), "the outputs must have one row per query"
    ),
}
BY_QUERY = [f"{name}_by_query" for name in ("mean", "variance", "scale", "dof", "noise_unit")]
WRONG_SHAPES = {
    predict_arguments: {
        **PREDICTIONS,
        "points": "points must have one area per query, and as many columns as X",
    },
    differentiate_arguments: {
        **PREDICTIONS,
        **dict.fromkeys(BY_QUERY, "the derivatives must have one row per query"),
    },
    coefficients_arguments: {
        **ROWS,
        "queries": "neighbors must have one row per query",
        "neighbors": "neighbors must have one row per query",
        **dict.fromkeys(
            ("beta", "weight", "variance", "status"),
            "the outputs must have one row per query, and one column per neighbor",
        ),
    },
    score_arguments: {
        **ROWS,
        "targets": "neighbors must have one row per target",
        "neighbors": "neighbors must have one row per target",
        **dict.fromkeys(("loss", "gradient", "status"), "the outputs must have one row per target"),
    },
}


@each_core
@each_dtype
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_wrong_number_of_rows_is_a_value_error(core, dtype, arguments):
    function, values = arguments(core, dtype)
    function(*values.values())
    for name, message in WRONG_SHAPES[arguments].items():
        wrong = dict(values)
        wrong[name] = np.ascontiguousarray(wrong[name][:-1])
        with pytest.raises(ValueError, match=f"^{message}$"):
            function(*wrong.values())


@each_core
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_wrong_dtype_dimension_or_layout_is_a_type_error(core, arguments):
    function, values = arguments(core, "float64")
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            continue
        other = np.int64 if value.dtype == np.int32 else np.float32
        wrongs = [value.astype(other), value[..., None], None, "text"]
        wrongs.append(np.repeat(value, 2, axis=0)[::2])  # the right numbers, not contiguous
        for wrong in wrongs:
            changed = {**values, name: wrong}
            with pytest.raises(TypeError, match="incompatible function arguments"):
                function(*changed.values())


@each_core
def test_outputs_that_cannot_be_written_are_refused(core):
    function, values = predict_arguments(core, "float64")
    values["mean"].flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        function(*values.values())


@each_core
@each_dtype
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_row_that_does_not_exist_is_a_value_error(core, dtype, arguments):
    function, values = arguments(core, dtype)
    wrong = dict(values, neighbors=values["neighbors"].copy())
    wrong["neighbors"][2, 1] = len(values["X"])
    with pytest.raises(ValueError, match=r"^neighbors names a row that X does not have$"):
        function(*wrong.values())
    if "targets" in values:
        for row in (-1, len(values["X"])):
            wrong = dict(values, targets=np.array([0, row, 1], np.int32))
            with pytest.raises(ValueError, match=r"^targets names a row that X does not have$"):
                function(*wrong.values())


@each_core
def test_columns_and_codes_that_do_not_fit_are_value_errors(core):
    function, values = predict_arguments(core, "float64")
    with pytest.raises(ValueError, match=r"^queries must have as many columns as X$"):
        function(*{**values, "queries": np.zeros((3, 5))}.values())
    for position, code, message in [
        (0, len(KERNELS), "no kernel has this code"),
        (0, -1, "no kernel has this code"),
        (1, len(LOCALIZERS), "no localizer has this code"),
        (2, np.ones(3), "lengthscale must have one value per column of X"),
    ]:
        model = list(values["model"])
        model[position] = code
        with pytest.raises(ValueError, match=f"^{message}$"):
            function(*{**values, "model": tuple(model)}.values())
    function, values = score_arguments(core, "float64")
    with pytest.raises(ValueError, match=r"^no objective has this code$"):
        function(*{**values, "objective": len(OBJECTIVES)}.values())


@each_core
@each_dtype
def test_workspace_grows_with_every_size(core, dtype):
    workspace = getattr(core, f"workspace_bytes_{dtype}")
    base = workspace(32, 3, 1, 0, False)
    assert base > 0
    assert base < workspace(64, 3, 1, 0, False)
    assert base < workspace(32, 9, 1, 0, False)
    assert base < workspace(32, 3, 9, 0, False)
    assert base < workspace(32, 3, 1, 4, False)
    assert base < workspace(32, 3, 1, 0, True)
    # What a device works with is not of this machine's memory.
    for backend in (each for each in BACKENDS_HERE.values() if not each.is_device):
        assert backend.workspace_bytes(SystemSize(32, 3, 1, np.dtype(dtype), True)) > 0
