# SPDX-License-Identifier: BSD-3-Clause
"""LSGPClassifier: as scikit-learn wants it, and with labels of any kind and number."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lsgp import Effort, LSGPClassifier, LSGPRegressor, ModelFileError

QUICK = {
    "random_state": 0,
    "effort__n_points": 60,
    "kernel": "matern32",
    "input_transform": "standardize",
    "n_neighbors": 30,
}


def make_data(n=300, n_classes=3, seed=0):
    """Classes in rings, so that no line divides them; every class has the same share."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    radius = np.hypot(*X.T) + 0.1 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(radius, np.arange(1, n_classes) / n_classes), radius)


def made(**settings):
    return LSGPClassifier().set_params(**settings)


def given(**settings):
    fixed = {"objective": None, "n_neighbors": 30, "hyperparameters__lengthscale": 1.0}
    return made(**{**fixed, **settings})


# ---- scikit-learn ----


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": "leaving one of two equal rows out is not "
        "leaving out one row of weight 2: the link sees other latents",
    }


@parametrize_with_checks(
    [
        LSGPClassifier(objective=None),
        LSGPClassifier(random_state=0, effort=Effort("fast", n_points=5, n_models=1)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_works_in_the_tools_of_scikit_learn():
    X, y = make_data(200)
    model = given()
    assert CalibratedClassifierCV(model, cv=3).fit(X, y).predict_proba(X).shape == (200, 3)
    search = GridSearchCV(model, {"n_neighbors": [2, 30]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert search.best_params_ == {"n_neighbors": 30}
    stacked = StackingClassifier([("lsgp", model), ("linear", LogisticRegression())], cv=3)
    assert stacked.fit(X, y).score(X, y) > 0.7
    piped = make_pipeline(StandardScaler(), model).fit(X, y)
    assert piped.score(X, y) > 0.7
    held_out = cross_val_predict(model, X, y, cv=3, method="predict_log_proba")
    assert log_loss(y, np.exp(held_out)) < 0.8 * np.log(3)


def test_displays_of_scikit_learn_draw_it():
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt
    from sklearn.calibration import CalibrationDisplay
    from sklearn.inspection import DecisionBoundaryDisplay

    X, y = make_data(200, n_classes=2)
    model = given().fit(X, y)
    draw = DecisionBoundaryDisplay.from_estimator
    for method in ("predict", "predict_proba"):
        drawn = draw(model, X, response_method=method, grid_resolution=8)
        assert drawn.response.shape == (8, 8)
    assert len(CalibrationDisplay.from_estimator(model, X, y, n_bins=5).prob_true) > 1
    plt.close("all")


# ---- probabilities ----


@pytest.mark.parametrize("n_classes", [2, 3, 26])
def test_probabilities_sum_to_one_and_are_never_zero_or_one(n_classes):
    X, y = make_data(400, n_classes)
    model = made(**QUICK).fit(X, y)
    far = np.concatenate([X, 100.0 * X])
    proba = model.predict_proba(far)
    assert np.allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert 0.0 < proba.min() < proba.max() < 1.0
    assert np.allclose(np.log(proba), model.predict_log_proba(far))
    assert np.array_equal(model.predict(far), model.classes_[proba.argmax(axis=1)])


def test_tuned_probabilities_beat_a_forecast_of_shares_and_are_calibrated():
    X, y = make_data(2000, 3)
    test_X, test_y = make_data(2000, 3, seed=1)
    model = made(**QUICK).fit(X, y)
    judged = model.calibration(test_X, test_y)
    assert judged.log_loss < 0.65 * np.log(3)
    # Labels drawn from the forecast itself have about .02 with so many rows.
    assert judged.calibration_error < 0.05


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_less_sure_far_from_the_data_and_with_fewer_rows(n_classes):
    queries = make_data(50, 2, seed=3)[0]
    few, many = (given(trend="constant").fit(*make_data(n, n_classes)) for n in (100, 4000))
    near, far = few.predict_proba([[0.0, 0.0], [30.0, 30.0]]).max(axis=1)
    assert far < near
    _, std = many.predict_proba([[0.0, 0.0], [2.5, 2.5]], return_std=True)
    assert (std[1] > 2.0 * std[0]).all()
    of_few, of_many = (one.predict_proba(queries, return_std=True)[1] for one in (few, many))
    assert (of_few >= 0).all()
    assert of_many.mean() < 0.8 * of_few.mean()


def test_predictions_do_not_depend_on_blocks_threads_or_order():
    X, y = make_data(500, 4)
    model = made(**QUICK).fit(X, y)
    expected = model.predict_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(model.set_params(n_jobs=2).predict_proba(X[order]), expected[order])
    assert np.array_equal(model.set_params(memory_budget="4MB").predict_proba(X), expected)


def test_backends_agree_and_two_classes_are_the_same_whatever_their_order():
    X, y = make_data(150, 3)
    one, other = (
        given(backend=backend).fit(X, y).predict_proba(X, return_std=True)
        for backend in ("cpu", "reference")
    )
    assert np.allclose(one, other, rtol=1e-6, atol=1e-9)
    X, y = make_data(300, 2)
    one, other = (given().fit(X, labels).predict_proba(X) for labels in (y, 1 - y))
    assert np.allclose(one, other[:, ::-1], atol=1e-4)


# ---- labels ----


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["a", "bb", "ccc"], dtype=object),
        np.array([-3, 7, 2000]),
        np.array([0.0, 1.0, 2.0]),
        np.array([False, True]),
    ],
    ids=["strings", "objects", "integers", "floats", "booleans"],
)
def test_labels_of_any_type_come_back_as_they_were(labels, tmp_path):
    X, codes = make_data(120, len(labels))
    model = given().fit(X, labels[codes])
    model.save(tmp_path / "model.lsgp")
    for each in (model, LSGPClassifier.load(tmp_path / "model.lsgp")):
        assert each.classes_.tolist() == labels.tolist()
        assert each.predict(X).dtype == each.classes_.dtype == labels.dtype
        assert np.mean(each.predict(X) == labels[codes]) > 0.7


def test_hundreds_of_classes_and_one():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(300), 8)
    X = rng.normal(size=(300, 4))[codes] + 0.02 * rng.normal(size=(len(codes), 4))
    model = given(hyperparameters__lengthscale=0.3).fit(X, codes)
    assert np.mean(model.predict(X) == codes) > 0.95
    model = LSGPClassifier(random_state=0).fit(X[:40], np.full(40, "only"))
    assert model.classes_.tolist() == ["only"]
    assert np.array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    assert set(model.predict(X)) == {"only"}
    assert model.loo().assessment.error == 0.0


# ---- weights ----


def test_weights_of_classes_and_rows_are_numbers_of_observations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = (X[:, 0] + rng.normal(size=400) > 1.8).astype(int)
    plain, balanced = (given(class_weight=w).fit(X, y) for w in (None, "balanced"))
    assert 0.05 < y.mean() < 0.2
    assert abs(plain.predict_proba(X)[:, 1].mean() - y.mean()) < 0.03
    assert balanced.predict_proba(X)[:, 1].mean() > 2.0 * y.mean()
    doubled = given(class_weight={0: 1.0, 1: 3.0}).fit(X, y).predict_proba(X)
    weighted = given().fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0)).predict_proba(X)
    assert np.allclose(doubled, weighted)
    kept = np.arange(400) % 3 > 0
    one = given().fit(X, y, sample_weight=kept.astype(float))
    other = given().fit(X[kept], y[kept])
    assert np.allclose(one.predict_proba(X), other.predict_proba(X))
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        given().fit(X, y, sample_weight=np.zeros(400))


# ---- odd data ----


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0.0, np.nan], ValueError, "Input y contains NaN"),
        (np.array(["a", None], object), ValueError, "y has 10 labels that are missing"),
        (np.array(["a", np.nan], object), ValueError, "labels that are missing|contains NaN"),
        ([0.123, 1.123], ValueError, "Unknown label type: continuous"),
        (np.array(["a", 1], object), TypeError, r"are of different types \(int, str\)"),
    ],
    ids=["NaN", "None", "NaN among texts", "numbers", "types"],
)
def test_what_is_no_label_is_refused(labels, error, message):
    X, _ = make_data(20)
    with pytest.raises(error, match=message):
        given().fit(X, np.array([labels[k % 2] for k in range(20)], np.asarray(labels).dtype))


@pytest.mark.parametrize("settings", [{"objective": None}, {"random_state": 0}])
def test_few_rows(settings):
    model = made(**settings)
    assert model.fit([[1.0]], ["a"]).predict([[2.0]]).tolist() == ["a"]
    proba = clone(model).fit([[0.0], [1.0]], ["a", "b"]).predict_proba([[0.0], [1.0]])
    assert proba[0, 0] > 0.5 > proba[1, 0]
    model = clone(model).fit([[0.0], [0.1], [1.0], [1.1], [5.0]], list("aabbc"))
    assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


@pytest.mark.parametrize("settings", [{"objective": None}, QUICK])
def test_class_of_one_row_has_a_probability_near_it(settings):
    X, y = make_data(200, 2)
    model = made(**settings).fit(np.concatenate([X, [[3.0, 3.0]]]), np.append(y, 2))
    proba = model.predict_proba([[0.0, 0.0], [3.0, 3.0]])
    assert 0.0 < proba[0, 2] < 0.05
    assert proba[1, 2] > proba[0, 2]


@pytest.mark.parametrize("settings", [{"objective": None}, {"random_state": 0}])
@pytest.mark.parametrize("labels", ["aab", "abbc"])
def test_where_all_rows_are_equal_probabilities_are_shares(settings, labels):
    y = np.array(list(labels) * 40)
    X = np.ones((len(y), 2))
    model = made(**settings).fit(X, y)
    shares = [np.mean(y == label) for label in model.classes_]
    # The links see half of the rows, whose shares differ by as much.
    assert np.allclose(model.predict_proba([[1.0, 1.0], [2.0, 5.0]]), shares, atol=0.05)


def test_what_cannot_be_fitted_is_one_clear_error_and_changes_nothing():
    X, y = make_data(60)
    model = given().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X[:, :1], y + 0.5)
    assert np.array_equal(model.predict_proba(X), before)
    many = np.arange(20_000)
    message = (
        r"^y has 10000 classes: one column for each of 20000 rows takes 1600000000 bytes, "
        r"more than memory_budget=1000000000. Increase memory_budget, or merge rare classes\.$"
    )
    with pytest.raises(ValueError, match=message):
        LSGPClassifier().fit(many[:, None], many // 2)
    with pytest.raises(ValueError, match="objective='crps' is not one of 'auto', 'log_loss', or"):
        LSGPClassifier(objective="crps").fit(X, y)
    with pytest.raises(ValueError, match="objective='log_loss' is not one of"):
        LSGPRegressor(objective="log_loss").fit(X, y)


# ---- rows that come and go ----


def test_rows_and_labels_may_come_and_go():
    X, y = make_data(300)
    model = given().partial_fit(X[:200], y[:200], classes=[0, 1, 2])
    model.partial_fit(X[200:], y[200:])
    assert np.array_equal(model.loo().observed, y)
    before = given().fit(X[:200], y[:200])
    assert model.calibration(X, y).log_loss < before.calibration(X, y).log_loss
    assert len(model.forget(np.arange(100)).loo().rows) == 200
    old = y < 2
    model = given().partial_fit(X[old], y[old], classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (300, 3)
    assert 0.0 < model.predict_proba(X)[:, 2].max() < 0.3
    model.partial_fit(X[~old], y[~old])
    assert model.predict_proba(X[~old])[:, 2].mean() > 0.3


def test_labels_that_nobody_announced_are_refused():
    X, y = make_data(100)
    model = given().fit(X, y)
    balanced = given(class_weight="balanced").fit(X, y)
    for call, message in (
        (lambda: model.partial_fit(X[:2], [7, 0]), r"^y has the labels 7, .* Fit again"),
        (lambda: model.partial_fit(X[:2], [1, 0], classes=range(4)), "the 3 classes of the first"),
        (lambda: given().partial_fit(X, y, classes=[0, 1]), "2, which are not among the 2 classes"),
        (lambda: balanced.partial_fit(X[:2], [1, 0]), "class_weight='balanced' needs all rows"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# ---- what it says of itself ----


def test_leave_one_out_predictions_and_explanations_are_those_without_the_row():
    X, y = make_data(80)
    model = given().fit(X, y)
    result = model.loo()
    left = clone(model).fit(X, y).forget([17])
    assert np.allclose(left.predict_proba(X[[17]]), result.probabilities[[17]], atol=1e-8)
    assert np.array_equal(result.observed, y)
    assert len(model.loo(n_points=10, random_state=0).rows) == 10
    explained = model.explain(X[:4], exclude=np.arange(4))
    assert np.allclose(explained.probabilities, result.probabilities[:4], atol=1e-8)


def test_leave_one_out_of_few_rows_leaves_rows_out_of_logistic_regression_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    y = (rng.uniform(size=150) < 1.0 / (1.0 + np.exp(-X.sum(axis=1)))).astype(int)
    model = LSGPClassifier(random_state=0, effort="fast").fit(X, y)
    assert model.ensemble_.classification.linear, "the data are made for logistic regression"
    assert model.loo().assessment.log_loss > 1.5 * model.calibration(X, y).log_loss


def test_assessment_agrees_with_scikit_learn():
    X, y = make_data(300, 2)
    model = given().fit(X, y)
    judged, proba = model.calibration(X, y), model.predict_proba(X)
    assert judged.log_loss == pytest.approx(log_loss(y, proba))
    assert judged.error == pytest.approx(1.0 - model.score(X, y))
    assert judged.brier_score == pytest.approx(2.0 * brier_score_loss(y, proba[:, 1]))
    assert np.array_equal(judged.confusion, confusion_matrix(y, model.predict(X)))
    assert judged.bin_counts.sum() == 300
    with pytest.raises(ValueError, match="y has shape \\(3,\\), but X has 300 rows"):
        model.calibration(X, y[:3])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{"objective": None}, {"random_state": 0, "effort": "fast"}])
def test_contributions_of_neighbors_add_up_to_the_probability(n_classes, settings):
    X, y = make_data(150, n_classes)
    model = made(**settings).fit(X, y)
    explained = model.explain(X[:6])
    total = explained.start + explained.contributions.sum(axis=1) + explained.others
    assert np.allclose(total, model.predict_proba(X[:6]), atol=1e-9)
    assert np.allclose(explained.contributions.sum(axis=2), 0.0, atol=1e-9)
    # A neighbor speaks for its own class, as far as it is near.
    one = explained.of_query(0)
    own = one.contributions[np.arange(len(one.rows)), np.searchsorted(model.classes_, one.labels)]
    assert np.sum(own * one.weights) > 0
    assert np.array_equal(one.labels, y[one.rows])
    assert {"label", "row", "distance"} <= set(explained.to_frame("polars").columns)
    assert explained.summary_frame("polars")["label"].to_list() == model.predict(X[:6]).tolist()


def test_describes_itself():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LSGPClassifier(random_state=0, effort=Effort("fast", n_points=50)).fit(X, y)
    text = model.describe()
    assert text.startswith("LSGPClassifier of 150 rows, 4 inputs, 3 classes")
    assert "leave-one-out log loss: 0." in text
    assert "petal" in text
    assert "3 classes" in model._repr_mimebundle_()["text/html"]
    assert model.ensemble_.classification.label_name == "target"


# ---- files ----


def test_saved_classifier_predicts_the_same_to_the_last_bit(tmp_path):
    X, y = make_data(120)
    settings = {"random_state": 0, "effort__n_points": 50, "effort": "fast"}
    model = made(**settings, class_weight={0: 2.0}).fit(X, y)
    path = tmp_path / "model.lsgp"
    model.save(path)
    for loaded in (LSGPClassifier.load(path), pickle.loads(pickle.dumps(model))):
        found, expected = (each.predict_proba(X, return_std=True) for each in (loaded, model))
        assert np.array_equal(found, expected)
        assert np.array_equal(loaded.loo().probabilities, model.loo().probabilities)
        assert loaded.get_params() == model.get_params()
        assert loaded.describe() == model.describe()
    with pytest.raises(ModelFileError, match="holds a model of LSGPClassifier, not of LSGPRegr"):
        LSGPRegressor.load(path)
