# SPDX-License-Identifier: BSD-3-Clause
"""Pictures show what they say: data, names, shares; and refuse what they cannot show."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tuned import regressor

from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.ensemble.assessment import assess
from lsgp.method.distribution import PredictiveDistribution
from lsgp.plotting.classes import COLORS
from lsgp.plotting.models import largest_shown
from lsgp.plotting.quality import coverage_band, pit_histogram

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from lsgp import plotting  # noqa: E402


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def make_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, np.sin(5 * X).sum(axis=1) + 0.1 * rng.normal(size=n)


def fit_given(names, **settings):
    X, y = make_data(200, len(names))
    X, y = pd.DataFrame(X, columns=names), pd.Series(y, name="height [m]")
    return LSGPRegressor().set_params(objective=None, n_neighbors=20, **settings).fit(X, y)


@pytest.fixture(scope="module")
def line():
    return fit_given(["time [s]"])


@pytest.fixture(scope="module")
def plane():
    return fit_given(["east [km]", "north [km]"])


@pytest.fixture(scope="module")
def space():
    return fit_given(["a", "b", "c"])


@pytest.fixture(scope="module")
def tuned():
    return regressor(effort__n_points=100, n_neighbors="auto").fit(*make_data(150, 2))


@pytest.fixture(scope="module")
def sides():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.array(["left", "right"])[(X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)]
    settings = {"objective": None, "hyperparameters": Hyperparameters(lengthscale=1.0)}
    return LSGPClassifier(**settings).fit(X, y), X, y


def labels_of(ax):
    return ax.get_xlabel(), ax.get_ylabel()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_by_label(ax, start):
    return next(each for each in ax.get_lines() if each.get_label().startswith(start))


def test_fit_shows_the_training_data_or_given_data(line):
    for ax, (X, y) in (
        (plotting.plot_fit(line), make_data(200, 1)),
        (plotting.plot_fit(line, *make_data(17, 1, seed=3)), make_data(17, 1, seed=3)),
    ):
        assert labels_of(ax) == ("time [s]", "height [m]")
        drawn = line_by_label(ax, "data")
        np.testing.assert_allclose(drawn.get_xdata(), X[:, 0], atol=1e-12)
        np.testing.assert_allclose(drawn.get_ydata(), y, atol=1e-12)
    few = plotting.plot_fit(line, n_points=30)
    assert "data (30 of 200)" in legend_texts(few)
    assert len(line_by_label(few, "data").get_xdata()) == 30
    part = plotting.plot_fit(line, [[0.4], [0.6]])
    assert part.get_xlim() == pytest.approx((0.394, 0.606))


def test_fit_shows_the_mean_and_the_intervals(line):
    ax = plotting.plot_fit(line, n_grid=50, level=0.8)
    mean = line_by_label(ax, "mean")
    queries = pd.DataFrame({"time [s]": mean.get_xdata()})
    np.testing.assert_allclose(mean.get_ydata(), line.predict(queries))
    assert {"80 % of an observation", "80 % of the latent function"} < set(legend_texts(ax))
    outer, inner = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    low, high = line.predict_interval(queries, 0.8)
    assert outer.min() == pytest.approx(low.min())
    assert outer.max() == pytest.approx(high.max())
    assert np.ptp(inner) < np.ptp(outer)


def test_one_of_several_targets_is_chosen_by_name_or_number():
    X, y = make_data(100, 1)
    model = LSGPRegressor(objective=None, n_neighbors=20)
    model.fit(X, pd.DataFrame({"a": y, "b": -y}))
    for target in ("b", 1):
        ax = plotting.plot_fit(model, target=target)
        assert ax.get_ylabel() == "b"
        np.testing.assert_allclose(line_by_label(ax, "data").get_ydata(), -y, atol=1e-12)
    with pytest.raises(ValueError, match=r"target='c' is not a target of the model.*a, b"):
        plotting.plot_fit(model, target="c")


def test_map_shows_mean_and_standard_deviation(plane):
    axes = plotting.plot_map(plane, (0, 1, 0, 2), resolution=10)
    titles = ["mean of height [m]", "standard deviation of height [m] (observation)"]
    assert [ax.get_title(loc="left") for ax in axes] == titles
    assert labels_of(axes[0]) == ("east [km]", "north [km]")
    # The pixel of the second row from below and the fourth column.
    query = pd.DataFrame({"east [km]": [0.35], "north [km]": [0.3]})
    for ax, value in zip(axes, plane.predict(query, return_std=True), strict=True):
        assert ax.images[0].get_array()[1, 3] == pytest.approx(value[0])
        assert ax.images[0].get_extent() == [0, 1, 0, 2]
    around, _ = plotting.plot_map(plane, [[-1.0, 0.0], [2.0, 0.5]], resolution=4, n_points=0)
    assert around.get_xlim()[0] < -1.0 < 2.0 < around.get_xlim()[1]
    assert not around.get_lines()
    for bounds in ((1, 0, 0, 1), (0, 1, 0, np.nan)):
        with pytest.raises(ValueError, match="is not a rectangle"):
            plotting.plot_map(plane, bounds)


def test_calibration_draws_the_coverage_of_every_level():
    rng = np.random.default_rng(0)
    found = assess(PredictiveDistribution(np.zeros(400), np.ones(400)), rng.normal(size=400))
    reliability, histogram = plotting.plot_calibration(found)
    drawn = line_by_label(reliability, "observed")
    np.testing.assert_array_equal(drawn.get_xdata(), found.levels)
    np.testing.assert_array_equal(drawn.get_ydata(), found.coverage)
    heights = [bar.get_height() for bar in histogram.patches[:-1]]
    assert np.mean(heights) == pytest.approx(1.0)


def test_calibration_of_a_model_is_leave_one_out_or_on_given_data(plane):
    X, y = make_data(50, 2, seed=1)
    X = pd.DataFrame(X, columns=plane.feature_names_in_)
    left_out, _ = plotting.plot_calibration(plane)
    given, _ = plotting.plot_calibration(plane, X, y)
    assert left_out.get_title(loc="left") == "leave-one-out: 200 points"
    assert given.get_title(loc="left") == "given data: 50 points"
    with pytest.raises(ValueError, match="only together"):
        plotting.plot_calibration(plane, X)


def test_residuals_are_inside_and_outside_their_intervals(plane):
    loo = plane.loo()
    ax = plotting.plot_residuals(loo, level=0.5)
    low, high = loo.predicted.interval(0.5)
    share = 100 * np.mean((loo.observed >= low) & (loo.observed <= high))
    assert legend_texts(ax)[0] == f"inside the 50 % interval: {share:.1f} %"
    drawn = np.concatenate([line_by_label(ax, word).get_ydata() for word in ("inside", "outside")])
    np.testing.assert_allclose(np.sort(drawn), np.sort(loo.residuals))
    assert plotting.plot_residuals(plane).get_xlabel() == "leave-one-out prediction of height [m]"


def test_bands_hold_calibrated_predictions_as_often_as_they_say():
    rng = np.random.default_rng(0)
    shares = rng.binomial(500, 0.9, 4000) / 500
    low, high = coverage_band(500, 0.9)
    assert np.mean((shares >= low) & (shares <= high)) == pytest.approx(0.95, abs=0.02)
    inside = []
    for _ in range(200):
        _, frequency, _, (low, high) = pit_histogram(rng.uniform(size=500))
        inside.append(np.mean((frequency >= low) & (frequency <= high)))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


def test_importance_bars_are_in_order_with_their_names(space):
    ax, found = plotting.plot_importance(space), space.importance()
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [found.names[j] for j in found.order]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(found.values)[::-1])
    few = plotting.plot_importance(space, n_inputs=2)
    assert few.get_xlabel() == "importance: R² lost when the input is shuffled (2 of 3)"


def test_effects_are_drawn_on_one_scale(space):
    axes = plotting.plot_effects(space)
    assert len({each.get_ylim() for each in axes}) == 1
    for each, effect in zip(axes, space.effects(), strict=True):
        assert each.get_xlabel() == effect.name
        np.testing.assert_array_equal(each.lines[1].get_ydata(), effect.effect)
    (one,) = plotting.plot_effects(space, ["b"])
    assert one.get_xlabel() == "b"


def neighbors_drawn(ax):
    return next(each for each in ax.collections if each.get_label().endswith("neighbors"))


def test_neighborhood_of_one_input_shows_targets_and_weights(line):
    ax = plotting.plot_neighborhood(line, [0.5])
    explained = line.explain(pd.DataFrame({"time [s]": [0.5]}))
    drawn = neighbors_drawn(ax)
    np.testing.assert_allclose(drawn.get_offsets()[:, 1], explained.observed[0])
    np.testing.assert_allclose(drawn.get_array(), explained.weights[0])
    assert labels_of(ax) == ("time [s]", "height [m]")


def test_neighborhood_of_two_inputs_is_in_space(plane):
    ax = plotting.plot_neighborhood(plane, [[0.5, 0.5]])
    explained = plane.explain(pd.DataFrame([[0.5, 0.5]], columns=plane.feature_names_in_))
    near = make_data(200, 2)[0][explained.rows[0]]
    np.testing.assert_allclose(neighbors_drawn(ax).get_offsets(), near, atol=1e-12)
    assert labels_of(ax) == ("east [km]", "north [km]")
    # The query, and all of its neighbors, are in the picture.
    for values, (low, high) in zip(near.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert low < min(values) <= max(values) < high
    far = plotting.plot_neighborhood(plane, [5.0, 5.0])
    assert far.get_title(loc="left").endswith("extrapolating")


def test_neighborhood_of_many_inputs_shows_the_most_relevant_or_the_given_two():
    model = fit_given(list("abcd"), hyperparameters__lengthscale=[9.0, 1.0, 9.5, 1.5])
    assert labels_of(plotting.plot_neighborhood(model, [0.5] * 4)) == ("b", "d")
    ax = plotting.plot_neighborhood(model, [0.5] * 4, inputs=("d", 0))
    assert labels_of(ax) == ("d", "a")
    with pytest.raises(ValueError, match=r"'e' is not an input of the model\. .* a, b, c, d"):
        plotting.plot_neighborhood(model, [0.5] * 4, inputs=("d", "e"))
    with pytest.raises(ValueError, match="query has 3 values, but the model has 4 inputs"):
        plotting.plot_neighborhood(model, [0.5] * 3)


def test_tuning_highlights_what_is_combined(tuned, line):
    ax = plotting.plot_tuning(tuned)
    labels = ax.get_yticklabels()
    is_bold = [label.get_fontweight() == "bold" for label in labels]
    assert sum(is_bold) == len(tuned.tuning_.chosen)
    assert len(labels) == len(tuned.tuning_.candidates)
    assert ax.get_xlim()[0] < min(candidate.loss for candidate in tuned.tuning_.candidates)
    with pytest.raises(ValueError, match=r"was not tuned.*Fit it with an objective"):
        plotting.plot_tuning(line)


def test_bad_losses_do_not_squeeze_the_others():
    assert largest_shown([1.0, 1.1, 1.2, 9.0], [0.1] * 4) < 3
    assert largest_shown([1.0], [0.0]) == np.inf
    assert largest_shown([1.0, 1.0, 1.0], [0.0] * 3) == np.inf


def test_reliability_and_confusion_show_what_was_assessed(sides):
    model, X, y = sides
    judged = model.loo().assessment
    drawn = plotting.plot_reliability(judged).collections[-1].get_offsets()
    used = judged.bin_counts >= 5
    assert np.allclose(drawn[:, 0], judged.bin_confidence[used])
    assert np.allclose(drawn[:, 1], judged.bin_accuracy[used])
    assert "Given data" in plotting.plot_reliability(model, X, y).get_title(loc="left")
    texts = [int(text.get_text()) for text in plotting.plot_confusion(model.loo()).texts]
    assert texts == judged.confusion.ravel().tolist()


def test_decision_map_has_the_colors_of_the_likeliest_classes(sides):
    ax = plotting.plot_decision(sides[0])
    assert ax.get_xlim()[0] < -0.9
    assert ax.get_xlim()[1] > 0.9
    image = ax.images[0].get_array()
    colors = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS[:2]])
    middle = image[len(image) // 2].astype(float)
    for pixel, own, other in ((middle[5], 0, 1), (middle[-5], 1, 0)):
        distance = np.abs(pixel - colors).sum(axis=1)
        assert distance[own] < distance[other]
    assert ax.get_xlabel() == "x0"


def test_pictures_refuse_models_of_other_dimensions_and_kinds(line, plane, sides):
    classifier, X, y = sides
    one = LSGPClassifier(objective=None).fit(X[:, :1], y)
    for draw, model, n in (
        (plotting.plot_fit, plane, 2),
        (plotting.plot_map, line, 1),
        (plotting.plot_decision, one, 1),
    ):
        with pytest.raises(ValueError, match=rf"{draw.__name__} shows .* but this one has {n}"):
            draw(model)
    for name in ("calibration", "residuals", "map", "fit", "reliability", "confusion", "decision"):
        of_labels = name in ("reliability", "confusion", "decision")
        shown, model = ("labels", plane) if of_labels else ("numbers", classifier)
        with pytest.raises(TypeError, match=f"is for models of {shown}, and this LSGP"):
            getattr(plotting, f"plot_{name}")(model)
    with pytest.raises(TypeError, match="Use explain"):
        plotting.plot_neighborhood(classifier, [0.0, 0.0])
    with pytest.raises(TypeError, match="Use plot_reliability"):
        plotting.plot_calibration(classifier.loo())


def test_pictures_are_drawn_on_the_axes_that_are_given(line, plane, tuned):
    _, (left, right) = plt.subplots(1, 2)
    assert plotting.plot_fit(line, ax=left) is left
    assert plotting.plot_residuals(line, ax=left) is left
    assert plotting.plot_tuning(tuned, ax=left) is left
    assert plotting.plot_importance(plane, ax=left) is left
    assert list(plotting.plot_map(plane, resolution=4, ax=[left, right])) == [left, right]
    assert list(plotting.plot_calibration(plane, ax=[left, right])) == [left, right]
    with pytest.raises(ValueError, match="ax has 1 axes, but plot_map needs 2"):
        plotting.plot_map(plane, ax=left)


def test_without_matplotlib_one_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from lsgp import LSGPRegressor, plotting\n"
        "try: plotting.plot_fit(LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0]))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'lsgp[plot]'" in done.stdout
