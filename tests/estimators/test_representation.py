# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator shows of itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RationalQuadratic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_data import make_data
from tuned import regressor
from untuned import made

from lsgp import LSGPRegressor
from lsgp.compute.text import percents


@pytest.fixture(scope="module")
def tuned():
    X, y = make_data(200, 2)
    return regressor(n_neighbors=24, effort__n_points=100).fit(
        pd.DataFrame(X, columns=["depth", "<age>"]), y
    )


def test_description_shows_models_score_and_importance(tuned):
    text = tuned.describe()
    assert text.startswith("LSGPRegressor of 200 rows, 2 inputs\n")
    assert "matern32  standardize  24" in text
    score = tuned.tuning_.loss * tuned.target_scaler_.std[0]
    assert f"leave-one-out CRPS: {score:.4g} in the units of y" in text
    assert "importance: R² lost when an input is shuffled (200 points); its effect:\n" in text
    lines = text.splitlines()
    assert lines[-2].startswith("  depth  ")
    assert lines[-2].endswith("bends")
    assert max(map(len, lines)) <= 100
    assert repr(tuned).startswith("LSGPRegressor(")


def test_html_is_that_of_scikit_learn_and_a_table(tuned):
    html = tuned._repr_html_()
    for part in ("sk-top-container", "matern32", "&lt;age&gt;", "<polyline"):
        assert part in html
    assert html.count("<tr>") >= 1 + len(tuned.fitted_)
    assert "<age>" not in html.split('class="lsgp-fitted"')[1]
    assert tuned._repr_mimebundle_()["text/html"].split("lsgp-fitted")[1] in html
    assert tuned._repr_mimebundle_()["text/plain"] == repr(tuned)


def test_text_display_has_no_html(tuned):
    with config_context(display="text"):
        assert not hasattr(tuned, "_repr_html_")
        assert list(tuned._repr_mimebundle_()) == ["text/plain"]


def test_unfitted_estimator_and_pipelines_are_shown():
    model = LSGPRegressor()
    assert "lsgp-fitted" not in model._repr_html_()
    assert "LSGPRegressor" in model._repr_html_()
    with pytest.raises(NotFittedError):
        model.describe()
    X, y = make_data(200, 2)
    pipeline = make_pipeline(StandardScaler(), LSGPRegressor(objective=None)).fit(X, y)
    assert "LSGPRegressor" in pipeline._repr_html_()


@pytest.mark.parametrize("objective", ["log_density", "squared_error", "marginal_likelihood"])
def test_score_is_in_the_units_of_the_targets(objective):
    X, y = make_data(60, 2)
    options = {"kernel": "rbf", "input_transform": None, "n_neighbors": 10, "effort__n_models": 1}
    one = made(objective=objective, effort__n_points=30, random_state=0, **options)
    described = one.fit(X, 1000.0 * y).describe()
    std, loss = one.target_scaler_.std[0], one.tuning_.loss
    expected = np.sqrt(loss) * std if objective == "squared_error" else loss + np.log(std)
    assert f": {expected:.4g} in the units of y (" in described


def test_description_of_models_that_were_not_tuned():
    X, y = make_data(60, 8)
    model = made(objective=None, localizer__bandwidth=2.5, hyperparameters__scale="global")
    text = model.fit(X, np.column_stack([y, y])).describe()
    said = ("60 rows, 8 inputs, 2 targets", "as given  within 2.5  global", "not tuned", "2 more")
    assert [part for part in said if part not in text] == []
    mixed = LSGPRegressor(objective=None, input_transform=[None] * 3 + ["half-rank"] * 5).fit(X, y)
    assert "3 as given, 5 half-rank  60" in mixed.describe()
    model = LSGPRegressor(objective=None, kernel=RationalQuadratic())
    with pytest.warns(UserWarning, match="native core"):
        assert "RationalQuadratic(" in model.fit(X[:15, :2], y[:15]).describe()


def test_results_are_one_short_line():
    X, y = make_data(400, 2)
    model = regressor(n_neighbors=24, effort__n_points=60).fit(X, y)
    explained = model.explain(X[:50])
    shown = [
        model.loo(),
        model.predict_distribution(X),
        model.predict_distribution(X[:0]),
        model.tuning_,
        model.tuning_.candidates[0],
        explained,
        model.explain(X[:0]),
        explained.of_query(3),
        model.ensemble_,
        model.fitted_[0],
        model.importance(),
        model.effects([0])[0],
        model.calibration(X, y),
    ]
    for result in shown:
        text = repr(result)
        assert text.startswith(f"{type(result).__name__}(")
        assert "\n" not in text
        assert len(text) < 300, text
    n = explained.n_neighbors
    span = f"{n.min()} neighbors" if n.min() == n.max() else f"{n.min()} to {n.max()} neighbors"
    n_far = explained.is_extrapolating.sum()
    assert repr(explained) == f"Explanation(50 queries, {span} each, {n_far} extrapolating)"
    predicted = model.predict_distribution(X)
    assert repr(predicted).startswith(
        f"PredictiveDistribution(shape=(400,), mean {predicted.mean.min():.4g} to "
    )
    assert repr(model.tuning_).endswith(" s)")


def test_shares_add_to_a_hundred():
    rng = np.random.default_rng(0)
    for digits in (0, 1):
        for _ in range(200):
            shares = rng.dirichlet(np.full(rng.integers(1, 9), 0.5))
            shown = percents(list(shares), digits)
            given = [0.0 if s.startswith("<") else float(s.removesuffix(" %")) for s in shown]
            assert sum(given) == pytest.approx(100.0)
            # Each is one of the two roundings of its share.
            assert np.all(np.abs(np.array(given) - 100.0 * shares) < 10.0**-digits + 1e-9)
    assert percents([0.999, 0.001]) == ["100 %", "< 1 %"]
    assert percents([]) == []
