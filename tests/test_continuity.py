# SPDX-License-Identifier: BSD-3-Clause
"""Maps have no seams: predictions are continuous in the query if the localizer ends at zero."""

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

#: Weight 0 at the bandwidth, so that points enter and leave a neighborhood unnoticed.
SEAMLESS = ("epanechnikov", "smooth")
N_STEPS = 2000


def largest_jumps(model, n_refinements=3):
    """Largest jump of mean and standard deviation along a line, for ever shorter steps.

    Each refinement zooms in on the largest jump of the one before, by a factor of 50.
    """
    start, stop = np.array([-0.9, -0.7]), np.array([0.9, 0.8])
    jumps = []
    for which in range(2):
        low, high, sizes = 0.0, 1.0, []
        for _ in range(1 + n_refinements):
            position = np.linspace(low, high, N_STEPS + 1)
            values = model.predict(start + position[:, None] * (stop - start), return_std=True)
            steps = np.abs(np.diff(values[which]))
            sizes.append(steps.max())
            middle, half_width = position[steps.argmax()], (high - low) / 100
            low, high = middle - half_width, middle + half_width
        jumps.append(sizes)
    return np.array(jumps)


def fit(**settings):
    rng = np.random.default_rng(21)
    X = rng.uniform(-1.0, 1.0, (600, 2))
    y = np.sin(4.0 * X[:, 0]) * np.cos(3.0 * X[:, 1]) + 0.3 * rng.normal(size=600)
    return LSGPRegressor(
        objective=None, n_neighbors=25, lengthscale=0.7, noise_variance=0.1, **settings
    ).fit(X, y)


def test_every_localizer_is_seamless_or_not():
    assert set(SEAMLESS) <= set(LOCALIZERS)


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("localizer", SEAMLESS)
@pytest.mark.parametrize("bandwidth", ["adaptive", 0.5])
def test_shrinking_steps_give_shrinking_jumps(localizer, scale, bandwidth):
    jumps = largest_jumps(fit(localizer=localizer, scale=scale, bandwidth=bandwidth))
    # Steps 50 times shorter: a continuous function with a kink would give ratios of 50.
    assert np.all(jumps[:, 1:] < jumps[:, :-1] / 10.0), jumps


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_has_seams_with_the_smooth_localizer(kernel):
    jumps = largest_jumps(fit(localizer="smooth", kernel=kernel), n_refinements=2)
    assert np.all(jumps[:, 1:] < jumps[:, :-1] / 10.0), jumps


@pytest.mark.parametrize("localizer", sorted(set(LOCALIZERS) - set(SEAMLESS)))
def test_localizers_that_end_abruptly_have_seams(localizer):
    means, _ = largest_jumps(fit(localizer=localizer))
    assert means[-1] > 1e-3
    assert means[-1] > 0.5 * means[1]


def test_prediction_at_a_training_point_is_the_limit_of_those_around_it():
    model = fit(localizer="smooth")
    rng = np.random.default_rng(22)
    point = rng.uniform(-0.8, 0.8, 2)
    model.fit(np.vstack([rng.uniform(-1.0, 1.0, (300, 2)), point]), rng.normal(size=301))
    direction = np.array([0.6, 0.8])
    at = model.predict(point[None])[0]
    steps = [1e-2, 1e-4, 1e-6, 1e-8]
    differences = [abs(model.predict((point + step * direction)[None])[0] - at) for step in steps]
    assert differences == sorted(differences, reverse=True)
    assert differences[-1] < 1e-6
