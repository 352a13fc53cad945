# SPDX-License-Identifier: BSD-3-Clause
"""The report says nothing else than the model: right side up, right way round, right rows."""

import base64
import io
import re

import matplotlib.image
import numpy as np
import pytest
from pages import fit, write_page
from scipy import stats

from lsgp import LSGPClassifier


def image_on_page(page, description):
    """The first image of a picture, as rows from the top of the page, in levels of gray."""
    found = "<image" + page.part(f'aria-label="{description}"', "</svg>").split("<image")[1]
    data = base64.b64decode(re.search(r'base64,([^"]*)"', found)[1].replace("\n", ""))
    pixels = matplotlib.image.imread(io.BytesIO(data), format="png")
    pixels = 1.0 - pixels[:, :, -1] * (1.0 - pixels[:, :, :3].mean(axis=-1))  # on white
    is_upside_down = re.search(r'transform="(matrix\(\S+ 0 0 -|scale\(1 -1)', found)
    return pixels[::-1] if is_upside_down else pixels


def corner_of_the_highest(image):
    """Whether the highest of what is shown lies at the top, and whether on the left."""
    rows, columns = np.nonzero(image == image.max())
    return rows.mean() < len(image) / 2, columns.mean() < image.shape[1] / 2


def test_density_is_where_the_data_are(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    X[:200] *= 0.3  # in the south-west
    X = X * [20.0, 10.0] + [100.0, 0.0]
    page = write_page(fit(X, X[:, 0]), tmp_path)
    # Many rows are dark.
    assert corner_of_the_highest(-image_on_page(page, "Density of the data")) == (False, True)


def test_maps_are_high_where_predictions_are(tmp_path):
    X = np.random.default_rng(0).uniform(size=(200, 2))
    page = write_page(fit(X, X[:, 1] - X[:, 0]), tmp_path)
    assert corner_of_the_highest(image_on_page(page, "Mean of y")) == (True, True)


def test_decisions_are_the_classes_of_their_places(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = fit(X, np.where(X[:, 1] > 0.3, "north", "south"), LSGPClassifier)
    image = image_on_page(write_page(model, tmp_path), "The likeliest class over two inputs")
    # Blue, of the first class, is darker than orange, of the second.
    assert image[:10].mean() < image[-10:].mean()


@pytest.mark.parametrize(
    ("factor", "n", "said"),
    [
        (2.5, 400, "Intervals are too narrow: the 50 % intervals hold"),
        (0.3, 400, "Intervals are wider than they need to be: the 50 % intervals hold"),
        (1.0, 400, "Calibrated: the 90 % intervals hold"),
        # Of few rows, chance alone is worth more.
        (1.2, 40, "Calibrated: the 90 % intervals hold 85.0 %"),
    ],
)
def test_verdict_is_on_the_side_that_intervals_are(factor, n, said, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100 + n, 2))
    model = fit(X[:100], X[:100, 0] + 0.1 * rng.normal(size=100))
    predicted = model.predict_distribution(X[100:])
    # Quantiles, so that shares are not left to chance.
    shares = rng.permutation((np.arange(n) + 0.5) / n)
    observed = predicted.mean + factor * predicted.scale * stats.t.ppf(shares, predicted.dof)
    page = write_page(model, tmp_path, X[100:], observed)
    of_given = page.part("<h3>Given data: y</h3>", "</div>")
    verdict = re.search(r'<p class="verdict (\w+)">(.*?)</p>', of_given)
    assert verdict[2].startswith(said)
    assert (verdict[1] == "warn") == (factor > 2)


def test_worst_rows_are_the_largest_errors_then_the_most_surprising_ones(tmp_path):
    rng = np.random.default_rng(0)
    # Where predictions are vague errors are large, and no surprise.
    X = rng.uniform(size=(100, 1))
    model = fit(X[:80], np.sin(5 * X[:80, 0]))
    queries = np.vstack([X[80:], np.linspace(1.5, 4.0, 12)[:, None]])
    predicted = model.predict_distribution(queries)
    z = rng.uniform(0.2, 0.9, len(queries)) * rng.choice([-1, 1], len(queries))
    z[[2, 5, 11, 17]] = [4.0, -5.0, 6.0, -7.0]
    errors = z * predicted.scale
    page = write_page(model, tmp_path, queries, predicted.mean + errors, count_from=1)
    worst = page.part('<section id="worst">', "</section>").split("<h3>Given data: y</h3>")[1]
    listed = re.findall(r'<tbody>\s*<tr>\s*<td data-v="(\d+)"', worst)
    largest = np.argsort(-np.abs(errors))[:8].tolist()
    chance = stats.t.sf(np.abs(z), predicted.dof)
    surprising = [i for i in np.argsort(chance).tolist() if i not in largest][:4]
    # The next errors by their size are others.
    assert set(surprising) != set(np.argsort(-np.abs(errors))[8:12].tolist())
    assert listed == [str(i + 1) for i in [*largest, *surprising]]


def test_rows_of_classes_are_the_doubtful_and_the_wrong_ones(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=150) > 0, "right", "left")
    model = fit(X[:100], y[:100], LSGPClassifier)
    page = write_page(model, tmp_path, X[100:], y[100:])
    proba = model.predict_proba(X[100:])
    own = proba[np.arange(50), np.searchsorted(model.classes_, y[100:])]
    wrong = [i for i in np.argsort(own, kind="stable").tolist() if own[i] < 0.5]
    doubtful = np.argsort(np.abs(proba[:, 0] - proba[:, 1]), kind="stable").tolist()
    for key, order in (("doubtful", doubtful), ("wrong", wrong)):
        table = page.part(f'<section id="{key}">', "</section>")
        listed = re.findall(r'<tr>\s*<td data-v="(\d+)"', table)
        assert listed == [str(i) for i in order[:10]]
