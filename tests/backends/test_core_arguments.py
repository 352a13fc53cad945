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


def arguments_of(function, dtype, **rest):
    """The first arguments of a native function, by name and in order, and the rest."""
    instance = as_dtype(make_instance(PLAIN), dtype)
    X, y, noise, _ = instance.problem
    values = {"X": X, "y": y, "noise": noise, "model": cpu._pack(instance.problem, False)[3]}
    if function == "score":
        return values | {
            "targets": instance.targets,
            "neighbors": instance.target_neighbors,
            **rest,
        }
    points = {"points": np.zeros((3, 2, 2), dtype)} if function == "predict" else {}
    return values | {"queries": instance.queries, **points, "neighbors": instance.neighbors, **rest}


def solved(dtype):
    mean, scale = np.empty((3, 1), dtype), np.empty((3, 1), dtype)
    variance, dof = np.empty(3, dtype), np.empty(3, dtype)
    status = np.empty(3, np.int32)
    return {"mean": mean, "variance": variance, "scale": scale, "dof": dof, "status": status}


def predict_arguments(core, dtype):
    return getattr(core, f"predict_{dtype}"), arguments_of("predict", dtype, **solved(dtype))


def differentiate_arguments(core, dtype):
    shapes = ((3, 1, 2), (3, 2), (3, 1, 2), (3, 2), (3, 2))
    by_query = {name: np.empty(shape, dtype) for name, shape in zip(BY_QUERY, shapes, strict=True)}
    values = arguments_of("differentiate", dtype, **solved(dtype), **by_query)
    return getattr(core, f"differentiate_{dtype}"), values


def coefficients_arguments(core, dtype):
    m = PLAIN.n_neighbors
    beta, weight = np.empty((3, m), dtype), np.empty((3, m), dtype)
    outputs = {"beta": beta, "weight": weight, "variance": np.empty(3, dtype)}
    outputs["status"] = np.empty(3, np.int32)
    return getattr(core, f"coefficients_{dtype}"), arguments_of("coefficients", dtype, **outputs)


def score_arguments(core, dtype):
    outputs = {"loss": np.empty(3), "gradient": np.empty((3, 8)), "status": np.empty(3, np.int32)}
    return getattr(core, f"score_{dtype}"), arguments_of("score", dtype, objective=0, **outputs)


BY_QUERY = [f"{name}_by_query" for name in ("mean", "variance", "scale", "dof", "noise_unit")]
ROWS = {"y": "y must have as many rows as X", "noise": "noise must have as many rows as X"}
PREDICTIONS = {
    **ROWS,
    "queries": "neighbors must have one row per query",
    "neighbors": "neighbors must have one row per query",
    **dict.fromkeys(
        ("mean", "variance", "scale", "dof", "status"), "the outputs must have one row per query"
    ),
}
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
    larger = (64, 3, 1, 0, False), (32, 9, 1, 0, False), (32, 3, 9, 0, False)
    for size in (*larger, (32, 3, 1, 4, False), (32, 3, 1, 0, True)):
        assert base < workspace(*size)
    # What a device works with is not of this machine's memory.
    for backend in (each for each in BACKENDS_HERE.values() if not each.is_device):
        assert backend.workspace_bytes(SystemSize(32, 3, 1, np.dtype(dtype), True)) > 0
