# SPDX-License-Identifier: BSD-3-Clause
"""Maps have no seams: predictions are continuous in the query if the localizer ends at zero."""

from itertools import pairwise

import numpy as np
import pytest
from untuned import made

from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

#: Weight 0 at the bandwidth, so that points enter and leave a neighborhood unnoticed.
SEAMLESS = ("epanechnikov", "smooth")
N_STEPS = 2000
#: The ends of the line that is followed.
START, STOP = np.array([-0.9, -0.7]), np.array([0.9, 0.8])


def largest_jumps(model, n_refinements):
    """Largest jump of mean and standard deviation along a line, for ever shorter steps.

    Each refinement zooms in on the largest jump of the one before, by a factor of 50.
    """
    jumps = []
    for which in range(2):
        low, high, sizes = 0.0, 1.0, []
        for _ in range(1 + n_refinements):
            position = np.linspace(low, high, N_STEPS + 1)
            values = model.predict(START + position[:, None] * (STOP - START), return_std=True)
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
    given = {"hyperparameters__lengthscale": 0.4, "hyperparameters__noise_variance": 0.035}
    return made(objective=None, n_neighbors=25, **given, **settings).fit(X, y)


def crossings(model):
    """Pairs of points on a line, 1e-12 apart, with a change of the neighborhood between them."""
    rows = model.fitted_[0].problem.X / model.model_.lengthscale
    scale = model.fitted_[0].transform.transform

    def neighborhood(position):
        query = scale([START + position * (STOP - START)])[0] / model.model_.lengthscale
        r = np.linalg.norm(rows - query, axis=1)
        if model.n_neighbors_ is None:
            return frozenset(np.flatnonzero(r <= model.model_.scaled_bandwidth))
        return frozenset(np.argsort(r)[: model.n_neighbors_])

    found = []
    edges = np.linspace(0.0, 1.0, 26)
    for low, high in pairwise(edges):
        if neighborhood(low) == neighborhood(high):
            continue
        while high - low > 1e-12:
            middle = 0.5 * (low + high)
            if neighborhood(middle) == neighborhood(low):
                low = middle
            else:
                high = middle
        found.append((low, high))
    return np.array(found)


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("bandwidth", ["adaptive", 0.29])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_only_localizers_that_end_at_zero_have_no_seam_where_neighborhoods_change(
    localizer, bandwidth, scale
):
    model = fit(localizer=localizer, localizer__bandwidth=bandwidth, hyperparameters__scale=scale)
    pairs = crossings(model)
    assert len(pairs) >= 20
    before, after = (
        np.array(model.predict(START + side[:, None] * (STOP - START), return_std=True))
        for side in pairs.T
    )
    jumps = np.abs(after - before)
    if localizer in SEAMLESS:
        assert jumps.max() < 1e-10
    else:
        # No neighbor comes or goes unnoticed.
        assert jumps.max(axis=0).min() > 1e-6
        assert jumps.max() > 1e-3


@pytest.mark.parametrize(
    ("n_refinements", "settings"),
    [
        *(
            (
                3,
                {"localizer": name, "hyperparameters__scale": scale, "localizer__bandwidth": width},
            )
            for name in SEAMLESS
            for scale in ("local", "global")
            for width in ("adaptive", 0.29)
        ),
        *((2, {"localizer": "smooth", "kernel": kernel}) for kernel in KERNELS),
    ],
    ids=str,
)
def test_shrinking_steps_give_shrinking_jumps(n_refinements, settings):
    jumps = largest_jumps(fit(**settings), n_refinements)
    # Steps 50 times shorter: a continuous function, also with a kink, gives ratios of about 50.
    assert np.all(jumps[:, 1:] < jumps[:, :-1] / 30.0), jumps


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_prediction_at_a_training_point_is_the_limit_of_those_around_it(localizer):
    model = fit(localizer=localizer)
    rng = np.random.default_rng(22)
    point = rng.uniform(-0.8, 0.8, 2)
    model.fit(np.vstack([rng.uniform(-1.0, 1.0, (300, 2)), point]), rng.normal(size=301))
    direction = np.array([0.6, 0.8])
    at = model.predict(point[None])[0]
    steps = [1e-2, 1e-4, 1e-6, 1e-8]
    differences = [abs(model.predict((point + step * direction)[None])[0] - at) for step in steps]
    assert differences == sorted(differences, reverse=True)
    assert differences[-1] < 1e-6
