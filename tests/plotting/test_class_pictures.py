# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and the page of classifiers."""

import re

import numpy as np
import pytest

from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.plotting import (
    plot_calibration,
    plot_confusion,
    plot_decision,
    plot_fit,
    plot_map,
    plot_neighborhood,
    plot_reliability,
    plot_residuals,
)
from lsgp.plotting.classes import COLORS
from lsgp.report import write_report

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.array(["<b>left", "right"])[(X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)]
    model = LSGPClassifier(objective=None, hyperparameters=Hyperparameters(lengthscale=1.0)).fit(
        X, y
    )
    model.X, model.y = X, y
    return model


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_reliability_shows_what_was_assessed(model):
    judged = model.loo().assessment
    ax = plot_reliability(judged)
    drawn = ax.collections[-1].get_offsets()
    used = judged.bin_counts >= 5
    assert np.allclose(drawn[:, 0], judged.bin_confidence[used])
    assert np.allclose(drawn[:, 1], judged.bin_accuracy[used])
    assert "Given data" in plot_reliability(model, model.X, model.y).get_title(loc="left")
    with pytest.raises(ValueError, match="X and y judge a model only together"):
        plot_reliability(model, model.X)


def test_confusion_shows_the_counts(model):
    judged = model.loo().assessment
    ax = plot_confusion(model.loo())
    texts = [int(text.get_text()) for text in ax.texts]
    assert texts == judged.confusion.ravel().tolist()


def test_decision_map_has_the_colors_of_the_likeliest_classes(model):
    ax = plot_decision(model)
    assert ax.get_xlim()[0] < -0.9
    assert ax.get_xlim()[1] > 0.9
    image = ax.images[0].get_array()
    colors = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS[:2]])
    middle = image[len(image) // 2].astype(float)
    for pixel, own, other in ((middle[5], 0, 1), (middle[-5], 1, 0)):
        distance = np.abs(pixel - colors).sum(axis=1)
        assert distance[own] < distance[other]
    assert ax.get_xlabel() == "x0"
    wrong = LSGPClassifier(objective=None).fit(model.X[:, :1], model.y)
    with pytest.raises(ValueError, match="plot_decision shows models of 2 inputs, but this one"):
        plot_decision(wrong)


def test_page_has_its_sections_and_escapes_labels(model, tmp_path):
    path = tmp_path / "page.html"
    write_report(model, path, model.X[:50], model.y[:50], title="Sides")
    text = path.read_text(encoding="utf-8")
    for part in ("quality", "decisions", "doubtful", "wrong", "importance", "fitted", "tuning"):
        assert f'<section id="{part}">' in text
    assert "Given data" in text
    assert "&lt;b&gt;left" in text
    assert "<b>left" not in text


def test_page_of_many_inputs_has_no_map(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = LSGPClassifier(objective=None).fit(X, X[:, 0] > 0)
    write_report(model, tmp_path / "page.html")
    assert 'id="decisions"' not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_page_counts_rows_as_it_is_told_and_names_every_member(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=70) > 0, "right", "left")
    settings = {"kernel": "matern32", "input_transform": "standardize"}
    model = LSGPClassifier().set_params(random_state=0, **settings).fit(X, y)
    assert model.ensemble_.classification.laplace
    write_report(model, tmp_path / "page.html", count_from=1)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("Rows are counted from 1.") == 2
    models = text[text.index("<h3>Models</h3>") :]
    models = models[: models.index("</table>")]
    assert "of log odds" in models
    shares = [float(share) for share in re.findall(r">([\d.]+) %<", models)]
    assert sum(shares) == pytest.approx(100.0, abs=1e-9)


def test_pictures_of_numbers_refuse_labels(model):
    for draw in (plot_calibration, plot_residuals, plot_map, plot_fit):
        with pytest.raises(TypeError, match="is for models of numbers, and this LSGPClassifier"):
            draw(model)
    with pytest.raises(TypeError, match="Use explain"):
        plot_neighborhood(model, [0.0, 0.0])
    with pytest.raises(TypeError, match="Use plot_reliability"):
        plot_calibration(model.loo())


def test_pictures_of_labels_refuse_numbers(model):
    of_numbers = LSGPRegressor(objective=None).fit(model.X, model.X[:, 0])
    for draw in (plot_reliability, plot_confusion, plot_decision):
        with pytest.raises(TypeError, match="is for models of labels, and this LSGPRegressor"):
            draw(of_numbers)
