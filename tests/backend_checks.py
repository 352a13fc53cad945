# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the backends share: the cores to test, and how results are compared."""

from functools import partial

import numpy as np
import pytest
from cases import DTYPES, PAIRS, Case, parameter_names, shift_log_parameter

from lsgp import _core
from lsgp.backends import BACKENDS, cpu, is_here, reference

#: Those that can run here: without a device, all but one.
BACKENDS_HERE = {name: backend for name, backend in BACKENDS.items() if is_here(name)}
each_backend = pytest.mark.parametrize("backend", BACKENDS_HERE.values(), ids=BACKENDS_HERE)
CORES = {name: _core.load(name) for name in _core.available_instruction_sets()}
each_core = pytest.mark.parametrize("core", CORES.values(), ids=CORES)


class Native:
    """The native backend with one of its cores."""

    def __init__(self, core):
        self.core = core

    def __getattr__(self, name):
        return partial(getattr(cpu, name), core=self.core)


SOLVERS = {name: Native(core) for name, core in CORES.items()} | {"reference": reference}
each_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
each_pair = pytest.mark.parametrize(
    ("kernel", "localizer"), PAIRS, ids=["-".join(pair) for pair in PAIRS]
)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)

#: Largest error relative to max(|value|, 0.1). In float32 the mean and the scale lose the digits
#: of the condition number: up to 1e4 here, where Hilbert's 1/u makes a point all but noise-free.
TOLERANCES = {
    "float64": dict.fromkeys(
        ("mean", "variance", "scale", "dof", "loss", "gradient", "noise_unit"), 1e-9
    ),
    "float32": {
        "mean": 1e-2,
        "variance": 2e-4,
        "scale": 1e-2,
        "dof": 1e-5,
        "noise_unit": 1e-5,
        "loss": 5e-3,
        "gradient": 5e-3,
    },
}
#: As above, of derivatives in the query. In float32 they are as good as those of a score.
DERIVATIVE_TOLERANCES = {
    "float64": dict.fromkeys(("mean", "variance", "scale", "dof", "noise_unit"), 1e-9),
    "float32": {"mean": 1e-2, "variance": 1e-3, "scale": 1e-2, "dof": 5e-4, "noise_unit": 1e-5},
}
PLAIN = Case("matern32", "smooth", "linear", "local", 7, 2, 1, False, False)


def assert_close(actual, expected, tolerances, label):
    """Compare two results field by field; the status must be equal."""
    for name, value, wanted in zip(expected._fields, actual, expected, strict=True):
        if name == "status":
            assert np.array_equal(value, wanted), f"{label}: status {value}, expected {wanted}"
            continue
        same = value == wanted  # infinite degrees of freedom included
        with np.errstate(invalid="ignore"):
            error = np.abs(value - wanted) / np.maximum(np.abs(wanted), 0.1)
        error = np.where(same, 0.0, error)
        worst = error.max(initial=0.0)
        assert worst <= tolerances[name], f"{label}: {name} is off by {worst:.2g} (relative)"


def assert_identical(actual, expected):
    for name, value, wanted in zip(expected._fields, actual, expected, strict=True):
        assert np.array_equal(value, wanted), name


def finite_differences(score, problem, n_parameters, step=2e-5):
    """Central differences of fourth order in each log hyperparameter, (q, p)."""

    def loss(index, factor):
        model = shift_log_parameter(problem.model, index, factor * step)
        return score(problem._replace(model=model)).loss

    columns = [
        (8.0 * (loss(p, 1) - loss(p, -1)) - (loss(p, 2) - loss(p, -2))) / (12.0 * step)
        for p in range(n_parameters)
    ]
    return np.stack(columns, axis=1)


def is_differentiable(instance):
    """Targets whose neighborhood has no kink nearby: no tie for the adaptive bandwidth, and no
    point on the edge of a fixed one, where the rectangular localizer jumps.
    """
    X, _, _, model = instance.problem
    z = (X[instance.target_neighbors] - X[instance.targets, None, :]) / model.lengthscale
    r = np.where(instance.target_neighbors >= 0, np.linalg.norm(z, axis=2), 0.0)
    if model.bandwidth is not None:
        return (np.abs(r / model.scaled_bandwidth - 1.0) > 1e-3).all(axis=1)
    r = np.sort(r, axis=1)
    return (r[:, :-1] < 0.999 * r[:, -1:]).all(axis=1)


def assert_gradient(instance, score, label):
    """Compare the gradient that ``score(problem)`` returns with differences of its loss."""
    loss, gradient, _ = score(instance.problem)
    expected = finite_differences(score, instance.problem, gradient.shape[1])
    # A difference of losses over the step cannot be better than the rounding of the losses.
    allowed = 1e-5 * np.abs(expected) + 1e-7 * np.maximum(np.abs(loss), 1.0)[:, None]
    compared = is_differentiable(instance)
    # Kinks are rare: a filter that leaves few targets is wrong itself.
    assert compared.sum() >= max(1, len(compared) // 2), f"{label}: nothing is compared"
    assert np.isfinite(gradient[compared]).all(), label
    wrong = (np.abs(gradient - expected) > allowed) & compared[:, None]
    names = parameter_names(gradient.shape[1] - 6)
    message = "; ".join(
        f"{names[p]} of target {q}: {gradient[q, p]:.8g}, differences say {expected[q, p]:.8g}"
        for q, p in np.argwhere(wrong)
    )
    assert not wrong.any(), f"{label}: {message}"
