# SPDX-License-Identifier: BSD-3-Clause
"""Tuning under control: failures, time limits, Ctrl-C, warm starts, reports and odd data."""

import math
import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import cross_val_score
from small_data import make_data
from tuned import assert_same_predictions, regressor
from untuned import made

from lsgp import Effort, LSGPRegressor, TuningStoppedWarning
from lsgp.backends import cpu
from lsgp.compute import progress
from lsgp.compute.clock import Clock, Interrupts, OutOfTimeError
from lsgp.method.contract import STATUS_NOT_POSITIVE_DEFINITE
from lsgp.method.kernels import CHOSEN_FROM
from lsgp.tuning import jobs
from lsgp.tuning.space import Space


@pytest.fixture(scope="module")
def data():
    return make_data(150)


def fail_sometimes(function, how_often):
    """The backend's function with every so many of its calls failing at some query."""
    n_calls = 0

    def failing(*arguments):
        nonlocal n_calls
        n_calls += 1
        result = function(*arguments)
        if n_calls % how_often == 0:
            result.status[0] = STATUS_NOT_POSITIVE_DEFINITE
            result[0][0] = np.nan
        return result

    return failing


@pytest.mark.parametrize("how_often", [1, 2, 5])
def test_a_failed_factorization_is_a_bad_value_for_the_optimizer(data, monkeypatch, how_often):
    X, y = data
    monkeypatch.setattr(cpu, "score", fail_sometimes(cpu.score, how_often))
    model = regressor().fit(X, y)
    assert model.tuning_.is_complete
    assert np.isfinite(model.tuning_.loss)
    assert model.loo().calibration.rmse < 0.6 * y.std()


def test_a_candidate_whose_predictions_fail_is_not_chosen(data, monkeypatch):
    X, y = data
    # Leave-one-out predictions of 150 rows are five calls.
    monkeypatch.setattr(cpu, "predict", fail_sometimes(cpu.predict, 12))
    model = regressor(effort__n_models=8).fit(X, y)
    monkeypatch.undo()
    assert np.isfinite(model.tuning_.loss)
    assert all(c.loss < 1.0 for c, _ in model.tuning_.chosen)
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_even_if_everything_fails_there_is_a_model(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(cpu, "score", fail_sometimes(cpu.score, 1))
    monkeypatch.setattr(cpu, "predict", fail_sometimes(cpu.predict, 1))
    model = regressor().fit(X, y)
    monkeypatch.undo()
    assert len(model.fitted_) == 1
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.parametrize("limit", [0, 0.0, 0.02])
def test_when_time_is_up_tuning_stops_with_the_best_so_far(data, limit):
    X, y = data
    with pytest.warns(
        TuningStoppedWarning,
        match=rf"^Tuning stopped after \d+\.\d s \(max_time={limit:g}\), before all that it "
        r"tries: the model uses the best hyperparameters found so far\. More time, or more threads "
        r"\(n_jobs\), may find better ones\.$",
    ):
        model = LSGPRegressor(random_state=0, max_time=limit).fit(X, y)
    assert model.tuning_.is_complete is False
    assert model.tuning_.seconds < 2.0
    assert len(model.tuning_.candidates) >= 1
    assert np.isfinite(model.predict(X, return_std=True)).all()


def at_check(monkeypatch, number):
    """Let the time be up at a look at the clock, by its number, and at all that follow."""
    n_looks = 0

    def check(self, needed=0.0):
        nonlocal n_looks
        if self.max_seconds is None:  # of the last model of all, which is judged in any case
            return
        n_looks += 1
        if n_looks >= number:
            raise OutOfTimeError

    monkeypatch.setattr(Clock, "check", check)


def fit_until(monkeypatch, number, X, y, **settings):
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", TuningStoppedWarning)
        at_check(patch, number)
        return made(random_state=0, max_time=1.0, **settings).fit(X, y)


@pytest.mark.parametrize("n", [20, 60, 150, 170])
def test_whenever_time_is_up_there_is_a_model_and_more_time_is_no_worse(monkeypatch, n):
    queries, observed = make_data(100, seed=4)
    settings = {"kernel": "rbf", "effort__n_points": 30, "input_transform": "standardize"}
    numbers, seeds = (1, 2, 10, 25, 10**9), (0, 1)
    errors, sizes = np.zeros((2, 5)), np.zeros((2, 5), dtype=int)
    for i, k in np.ndindex(2, 5):
        X, y = make_data(n, seed=seeds[i])
        model = fit_until(monkeypatch, numbers[k], X, y, **settings)
        mean, std = model.predict(queries, return_std=True)
        assert np.isfinite(std).all()
        errors[i, k] = np.sqrt(np.mean((mean - observed) ** 2))
        sizes[i, k] = len(model.tuning_.candidates)
        assert model.tuning_.is_complete == (k == 4)
    assert (np.diff(sizes, axis=1) >= 0).all()
    for earlier, later in pairwise(errors.mean(axis=0)):
        assert later < 1.25 * earlier + 0.02
    assert errors[:, -1].max() < 0.5 * observed.std()


def test_a_descent_that_is_stopped_counts(data, monkeypatch):
    X, y = data
    # The first look is that of the job, then one for each evaluation.
    models = [fit_until(monkeypatch, k, X, y, n_neighbors=20).tuning_ for k in (1, 6)]
    assert models[1].loss < models[0].loss


def test_500_rows_are_no_slower_than_501(monkeypatch):
    X, y = make_data(501)
    losses = {}
    for n in (500, 501):
        settings = {"kernel": "rbf", "input_transform": "standardize", "effort__n_points": 100}
        # So many evaluations that exact GPs of 500 rows are not done.
        losses[n] = fit_until(monkeypatch, 40, X[:n], y[:n], **settings).tuning_.loss
    assert losses[500] < 1.05 * losses[501]


def test_exact_gps_count_as_far_as_they_are_tuned(monkeypatch):
    X, y = make_data(200)
    settings = {"effort__n_points": 60, "input_transform": "standardize"}
    kinds = []
    for number in (1, 8, 150, 400):
        tuning = fit_until(monkeypatch, number, X, y, **settings).tuning_
        kinds.append({c.n_neighbors for c in tuning.candidates})
    assert 200 not in kinds[0]
    assert all(200 in kind for kind in kinds[1:])


def test_a_fit_that_is_stopped_does_not_begin_to_factor_many_rows(monkeypatch):
    monkeypatch.setattr("lsgp.tuning.exact.ALWAYS_EXACT", 100)
    X, y = make_data(300)
    settings = {"kernel": "rbf", "effort__n_points": 100, "input_transform": "standardize"}
    for number in (1, 3, 10):
        (candidate,) = fit_until(monkeypatch, number, X, y, **settings).tuning_.candidates
        assert candidate.n_neighbors < 300


def test_with_time_enough_tuning_is_complete_and_the_same(data):
    X, y = data
    assert_same_predictions(regressor().fit(X, y), regressor(max_time=3600.0).fit(X, y), X)


@pytest.mark.parametrize("limit", [-1, "1", math.nan, [1.0]])
def test_a_time_limit_that_is_none_is_refused(data, limit):
    with pytest.raises(
        ValueError, match=re.escape(f"max_time={limit!r} must be a number of seconds, not negative")
    ):
        regressor(max_time=limit).fit(*data)


def interrupting(monkeypatch, calls):
    """Ctrl-C at these calls of the backend; the list of all calls."""
    asked = []
    score = cpu.score

    def interrupt(*arguments):
        asked.append(True)
        if len(asked) in calls:
            raise KeyboardInterrupt
        return score(*arguments)

    monkeypatch.setattr(cpu, "score", interrupt)
    monkeypatch.setattr(jobs, "INTERRUPTS", Interrupts())
    return asked


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("when", [1, 3, 12])
def test_ctrl_c_leaves_a_model_of_the_best_so_far(data, monkeypatch, when, n_jobs):
    X, y = data
    asked = interrupting(monkeypatch, {when})
    model = regressor(n_jobs=n_jobs)
    with pytest.warns(
        UserWarning,
        match=r"^Tuning was interrupted: the model uses the best hyperparameters found so far\.$",
    ):
        model.fit(X, y)
    monkeypatch.undo()
    assert len(asked) <= when + 8  # those of blocks that had begun
    assert model.tuning_.is_complete is False
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_a_second_ctrl_c_at_once_ends_a_cross_validation(data, monkeypatch):
    interrupting(monkeypatch, {5, 12})
    with (
        pytest.warns(TuningStoppedWarning, match="Tuning was interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        cross_val_score(regressor(), *data, cv=5, error_score="raise")


def test_a_second_ctrl_c_later_on_ends_but_the_tuning_that_it_met(data, monkeypatch):
    interrupting(monkeypatch, {5, 12})
    monkeypatch.setattr("lsgp.compute.clock.SECOND_INTERRUPT", 0.0)
    with pytest.warns(TuningStoppedWarning, match="Tuning was interrupted"):
        scores = cross_val_score(regressor(), *data, cv=5, error_score="raise")
    assert np.isfinite(scores).all()


def test_ctrl_c_outside_tuning_raises(data, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("lsgp.estimators.estimator.build_tuned", interrupt)
    with pytest.raises(KeyboardInterrupt):
        regressor().fit(*data)


def count_evaluations(monkeypatch):
    counts = []
    evaluate = Space.evaluate

    def counting(self, model, sample, objective):
        counts.append(len(sample.targets))
        return evaluate(self, model, sample, objective)

    monkeypatch.setattr(Space, "evaluate", counting)
    return counts


def test_warm_start_begins_where_the_last_fit_ended(data, monkeypatch):
    X, y = data
    counts = count_evaluations(monkeypatch)
    settings = {"kernel": "auto", "effort__n_models": 1, "effort__n_points": 30}
    model = regressor(warm_start=True, **settings).fit(X, y)
    n_cold = len(counts)
    first = model.tuning_
    counts.clear()
    model.fit(X, y)
    assert len(counts) < 0.5 * n_cold
    chosen, again = first.chosen[0][0], model.tuning_.candidates
    assert {c.model.kernel for c in again} == {chosen.model.kernel}
    assert {c.input_transform for c in again} == {chosen.input_transform}
    assert model.tuning_.loss < 1.05 * first.loss
    counts.clear()
    model.set_params(warm_start=False).fit(X, y)
    assert len(counts) == n_cold


def test_warm_start_keeps_neighborhoods_and_exact_gps(monkeypatch):
    monkeypatch.setattr("lsgp.tuning.exact.ALWAYS_EXACT", 100)  # of more rows, after a trial
    X, y = make_data(300)
    settings = {"kernel": "rbf", "input_transform": "standardize", "effort__n_points": 100}
    model = made(random_state=0, warm_start=True, **settings).fit(X, y)
    first = model.tuning_
    sizes = {c.n_neighbors for c, _ in first.chosen}
    assert 300 in sizes
    model.fit(X, y)
    assert {c.n_neighbors for c in model.tuning_.candidates} == sizes
    assert model.tuning_.loss < 1.02 * first.loss


def test_warm_start_takes_more_rows_and_fewer(data):
    X, y = data
    model = regressor(warm_start=True, n_neighbors="auto", effort__n_points=50, effort="fast")
    for n in (100, 150, 12):
        model.fit(X[:n], y[:n])
        assert model.n_neighbors_ <= n
        assert np.isfinite(model.predict(X, return_std=True)).all()
    model.fit(X[:, :2], y)
    assert model.predict(X[:, :2]).shape == (150,)


@pytest.mark.parametrize(
    "changed",
    [
        {"hyperparameters__noise_variance": 0.5},
        {"hyperparameters__lengthscale": 3.0, "input_transform": None},
        {"kernel": "rbf"},
        {"kernel": RBF(1.0) + WhiteKernel(0.1)},
        {"n_neighbors": 17},
        {"hyperparameters__scale": "global"},
        {"trend": "none"},
        {"input_transform": "half-rank"},
        {"input_transform": ["standardize", None, "half-rank"]},
        {"localizer": "epanechnikov"},
        {"localizer__bandwidth": 1.0, "input_transform": None},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_warm_start_does_not_overrule_new_settings(data, changed):
    X, y = data
    model = regressor(warm_start=True, effort__n_points=30, hyperparameters__scale="local").fit(
        X, y
    )
    model.set_params(**changed).fit(X, y)
    changed = {name.rpartition("__")[2]: value for name, value in changed.items()}
    for fitted in model.fitted_:
        if "noise_variance" in changed:
            own, unit = fitted.model, model.target_scaler_.std[0] ** 2
            assert own.noise_variance * own.signal_variance * unit == pytest.approx(0.5)
        for name in ("lengthscale", "localizer", "bandwidth"):
            if name in changed:
                assert np.all(getattr(fitted.model, name) == changed[name])
        if "kernel" in changed:
            assert fitted.model.kernel == "rbf"
        if "n_neighbors" in changed:
            assert fitted.n_neighbors == 17
        if "input_transform" in changed:
            kinds = changed["input_transform"]
            kinds = kinds if isinstance(kinds, list) else [kinds] * 3
            assert fitted.transform.kinds == tuple(kinds)
        assert math.isinf(fitted.model.scale_dof) == (changed.get("scale") == "global")
        assert (fitted.model.constant_variance == 0.0) == ("trend" in changed)


def test_one_model_is_kept_when_one_is_asked_for(data):
    model = regressor(effort__n_models=1, kernel="auto").fit(*data)
    assert len(model.fitted_) == 1
    assert model.fitted_[0].weight == 1.0
    assert np.count_nonzero(model.tuning_.weights) == 1


def test_what_was_tried_is_reported(data):
    pytest.importorskip("pandas")
    model = LSGPRegressor(random_state=0, effort=Effort(n_points=30), n_neighbors=20).fit(*data)
    tuning = model.tuning_
    frame = tuning.to_frame()
    settings = ["kernel", "input_transform", "scale", "n_neighbors", "reach"]
    assert list(frame.columns) == [*settings, "loss", "standard_error", "weight", "seconds"]
    assert len(frame) == len(tuning.candidates)
    assert frame["loss"].is_monotonic_increasing
    assert frame["weight"].sum() == pytest.approx(1.0)
    assert tuning.weights.sum() == pytest.approx(1.0)
    # Those that came to the end: others were dropped on the way.
    assert set(frame["kernel"]) <= set(CHOSEN_FROM)
    assert set(frame["input_transform"]) <= {"standardize", "yeo-johnson", "half-rank"}
    assert set(frame["scale"]) <= {"local", "global"}
    assert (frame["seconds"] >= 0).all()
    weights = [weight for _, weight in tuning.chosen]
    assert weights == sorted(weights, reverse=True)
    assert [fitted.weight for fitted in model.fitted_] == weights
    assert [fitted.model for fitted in model.fitted_] == [c.model for c, _ in tuning.chosen]
    # Losses are in scaled units: a constant has a CRPS of 0.564.
    assert 0.0 < tuning.loss < 0.4
    assert tuning.is_complete
    assert tuning.seconds >= frame["seconds"].max()
    assert model.scale_factor_ == tuning.scale_factor
    with pytest.raises(AttributeError):
        tuning.loss = 0.0


def test_progress_goes_to_stderr_and_only_on_request(data, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")  # on fewer, the description is cut before the numbers
    monkeypatch.setattr(progress, "APPEARS_AFTER", 0.0)
    regressor(effort__n_points=30, verbose=1).fit(*data)
    printed = capsys.readouterr()
    assert printed.out.strip("\n") == ""
    assert "Tuning: matern32, standardize" in printed.err
    assert "loss 0." in printed.err
    regressor(effort__n_points=30, verbose=0).fit(*data)
    assert capsys.readouterr() == ("", "")
    monkeypatch.delenv("FORCE_COLOR")  # stderr is no terminal
    regressor(effort__n_points=30, verbose=1).fit(*data)
    assert "".join(capsys.readouterr()).strip() == ""


@pytest.mark.parametrize("value", [0.0, 7.0, -1e12])
def test_a_constant_target_is_predicted_and_does_no_harm_to_another(data, value):
    X, y = data
    model = regressor(effort__n_points=30).fit(X, np.full(150, value))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-6, atol=1e-6)
    assert np.isfinite(std).all()
    both = regressor().fit(X, np.column_stack([np.full(150, value), y]))
    mean, std = both.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 0], value, rtol=1e-6, atol=1e-6)
    assert np.mean((mean[:, 1] - y) ** 2) < 0.1 * y.var()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10])
def test_few_rows_suffice(n):
    X, y = make_data(n)
    model = regressor(kernel="auto" if n == 4 else "matern52", n_neighbors="auto").fit(X, y)
    predicted = model.predict(make_data(50)[0], return_std=True)
    assert np.isfinite(predicted).all()
    assert (predicted[1] > 0).all()
    assert (model.tuning_ is None) == (n <= 2)


def test_units_do_not_matter(data):
    X, y = data
    plain = regressor(effort__n_points=30).fit(X, y).predict(X, return_std=True)
    for unit in 2.0 ** np.array([-996, -498, 498, 996]):  # which change no digit
        scaled = regressor(effort__n_points=30).fit(X, unit * y).predict(X, return_std=True)
        np.testing.assert_array_equal(np.array(scaled) / unit, plain)
    for unit in (1e-150, 1e150):
        scaled = regressor(effort__n_points=30).fit(unit * X, y).predict(unit * X)
        np.testing.assert_allclose(scaled, plain[0], atol=1e-3)


def test_duplicate_rows_are_learnt_as_noise():
    rng = np.random.default_rng(6)
    X = np.repeat(rng.uniform(-1.0, 1.0, (20, 2)), 10, axis=0)
    y = np.sin(3.0 * X[:, 0]) + 0.5 * rng.normal(size=200)
    model = regressor().fit(X, y)
    std = model.predict(X, return_std=True)[1]
    assert 0.35 < np.median(std) < 0.75
    exact = regressor().fit(X, np.sin(3.0 * X[:, 0]))
    assert np.abs(exact.predict(X) - np.sin(3.0 * X[:, 0])).max() < 1e-2


def test_inputs_that_are_all_the_same_leave_the_mean():
    y = np.random.default_rng(7).normal(size=60)
    model = regressor(n_neighbors=60).fit(np.ones((60, 2)), y)
    mean, std = model.predict(np.ones((3, 2)), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=0.1)
    np.testing.assert_allclose(std, y.std(), rtol=0.2)
