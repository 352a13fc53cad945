# SPDX-License-Identifier: BSD-3-Clause
"""Tables with texts, dates and holes: what is taken, what becomes of it, and what is refused."""

import datetime as dt
import decimal
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tables import fit_table
from untuned import made

from lsgp import Effort, Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.ensemble.predict import widen, widen_scaled
from lsgp.inputs.encoding import needs_encoding
from lsgp.method.distribution import PredictiveDistribution


def mixed(n=300, seed=0):
    """A table of every kind, and targets that depend on most of it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue"], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "flag": rng.uniform(size=n) < 0.5,
            "shop": rng.choice([f"shop {k}" for k in range(60)], n),
            "grade": pd.Categorical(
                rng.choice(["low", "middle", "high"], n), ["low", "middle", "high"], ordered=True
            ),
            "lag": pd.to_timedelta(rng.integers(0, 100, n), "h"),
        }
    )
    shop = rng.normal(size=60)[table["shop"].str.slice(5).astype(int)]
    y = table["size"] + 2.0 * (table["color"] == "red") + shop + table["grade"].cat.codes
    y = (y + 0.1 * rng.normal(size=n)).to_numpy()
    table.loc[table.index % 10 == 3, "size"] = np.nan
    table.loc[table.index % 11 == 4, "color"] = None
    return table, y


def untuned(**settings):
    return made(objective=None, n_neighbors=30, **settings)


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed()
    return untuned().fit(X, y), X, y


def kinds(model):
    return {each["column"]: each["kind"] for each in model.encoding_}


# ---- what is taken ----


def test_every_kind_of_column_is_known(fitted):
    model, X, _ = fitted
    assert kinds(model) == {
        "size": "number",
        "color": "category",
        "day": "date",
        "flag": "flag",
        "shop": "category",
        "grade": "ordered",
        "lag": "duration",
    }
    assert model.n_features_in_ == 7
    assert list(model.feature_names_in_) == list(X.columns)
    assert np.isfinite(model.predict(X)).all()


def to_pyarrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


@pytest.mark.parametrize("to", [pl.from_pandas, to_pyarrow], ids=["polars", "pyarrow"])
def test_libraries_of_frames_agree(to):
    X, y = mixed()
    other = to(X.drop(columns="grade"))
    one, two = untuned().fit(X.drop(columns="grade"), y), untuned().fit(other, y)
    assert kinds(one) == kinds(two)
    expected = one.predict(X.drop(columns="grade"))
    np.testing.assert_allclose(two.predict(other), expected, rtol=1e-12)


def test_plain_numbers_have_no_encoder_and_take_the_path_of_ever():
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80.0)
    for given in (X, X.tolist(), pd.DataFrame(X), pl.DataFrame(X), X.astype(object)):
        assert not needs_encoding(given)
    model = untuned().fit(X, y)
    assert model.ensemble_.encoder is None
    assert model.encoding_ == []
    with pytest.raises(ValueError, match="Input X contains NaN: column 'x0' misses 1 of 1 cells"):
        model.predict([[np.nan, 0.0]])


def test_nan_in_an_array_is_missing_as_in_a_frame():
    X, y = mixed()
    numbers = np.column_stack([X["size"], X["flag"].astype(float)])
    by_array = untuned().fit(numbers, y)
    by_frame = untuned().fit(pd.DataFrame(numbers, columns=["a", "b"]), y)
    named = pd.DataFrame(numbers, columns=["a", "b"])
    assert np.array_equal(by_array.predict(numbers), by_frame.predict(named))
    assert by_array.encoding_[0]["share_missing"] == pytest.approx(0.1)


def test_missing_values_of_every_kind_are_one():
    y = np.arange(40.0)
    base = [["a", 1.0 + k] for k in range(20)] + [["b", 2.0 + k] for k in range(20)]
    predictions = []
    for nothing in (None, np.nan, pd.NaT, pd.NA, "", "  "):
        X = np.array(base, dtype=object)
        X[::5, 0] = nothing
        predictions.append(untuned().fit(X, y).predict(X))
    assert all(np.array_equal(one, predictions[0]) for one in predictions)


def test_numbers_stored_as_text_are_numbers():
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    texts = pd.DataFrame({"x": [f"{v:.6f}" for v in x], "c": rng.choice(["u", "v"], 100)})
    numbers = texts.assign(x=texts["x"].astype(float))
    one, two = untuned().fit(texts, x), untuned().fit(numbers, x)
    assert np.array_equal(one.predict(texts), two.predict(numbers))
    assert np.array_equal(one.predict(numbers), two.predict(texts))


def test_codes_with_leading_zeros_are_categories_and_others_can_be_declared():
    codes = pd.DataFrame({"zip": ["02134", "10001", "02134", "94110"] * 10, "x": np.arange(40.0)})
    y = np.arange(40.0)
    assert kinds(untuned().fit(codes, y))["zip"] == "category"
    plain = codes.assign(zip=codes["zip"].astype(int))
    assert untuned().fit(plain, y).encoding_ == []
    for given in (["zip"], [0], "zip", [True, False]):
        model = untuned(categorical_features=given).fit(plain, y)
        assert kinds(model) == {"zip": "category", "x": "number"}
    # 2134 and 2134.0 are one level.
    assert np.array_equal(model.predict(plain), model.predict(plain.astype(float)))


def test_objects_dates_and_decimals_are_read():
    day = dt.date(1500, 1, 1)
    X = pd.DataFrame(
        {
            "day": [day + dt.timedelta(days=100 * k) for k in range(60)],
            "at": [dt.time(k % 24, 30) for k in range(60)],
            "price": [decimal.Decimal(k) / 7 for k in range(60)],
        }
    )
    model = untuned().fit(X, np.arange(60.0))
    assert kinds(model) == {"day": "date", "at": "time", "price": "number"}
    assert np.isfinite(model.predict(X)).all()


def test_dates_in_texts_and_in_other_time_zones_are_the_same_moments():
    moments = pd.date_range("2021-03-01", periods=200, freq="7h", tz="UTC")
    y = np.sin(np.arange(200.0) / 20)
    typed = pd.DataFrame({"t": moments})
    model = untuned().fit(typed, y)
    expected = model.predict(typed)
    elsewhere = pd.DataFrame({"t": moments.tz_convert("America/New_York")})
    np.testing.assert_allclose(model.predict(elsewhere), expected, rtol=1e-9)
    written = pd.DataFrame({"t": [moment.isoformat() for moment in moments]})
    np.testing.assert_allclose(untuned().fit(written, y).predict(written), expected, rtol=1e-9)


# ---- queries ----


def test_column_order_at_fit_does_not_matter_to_what_columns_become(fitted):
    model, X, y = fitted
    other = untuned().fit(X[X.columns[::-1]], y)
    by_name = {each["column"]: each for each in model.encoding_}
    assert {each["column"]: each for each in other.encoding_} == by_name
    np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-6, atol=1e-8)


def test_a_column_of_another_kind_is_one_clear_error(fitted):
    model, X, _ = fitted
    message = (
        "Column 'size' held numbers when the model was fitted, and now holds categories ('big', "
        "'small'). Give numbers."
    )
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        model.predict(X.assign(size=["big", "small"] * 150))
    with pytest.raises(ValueError, match=r"^Column 'day' held dates .* now holds numbers"):
        model.predict(X.assign(day=np.arange(300.0)))


def test_unseen_levels_are_predicted_flagged_and_less_sure():
    X, y = mixed(600)
    model = untuned().fit(X, y)
    known = X.iloc[:40]
    for column in ("color", "shop"):
        new = known.assign(**{column: "never seen before"})
        explained = model.explain(new)
        assert explained.is_beyond_range[:, list(X.columns).index(column)].all()
        std, usual = (
            model.predict(new, return_std=True)[1],
            model.predict(known, return_std=True)[1],
        )
        assert np.mean(std) > np.mean(usual)


@pytest.mark.parametrize(("n_levels", "rows_per_level"), [(20, 30), (120, 5)])
def test_intervals_at_levels_never_seen_cover(n_levels, rows_per_level):
    rng = np.random.default_rng(1)
    n = n_levels * rows_per_level
    level = rng.permutation(np.repeat(np.arange(n_levels), rows_per_level))
    x = rng.uniform(size=n)
    y = np.sin(6 * x) + rng.normal(size=n_levels)[level] + 0.2 * rng.normal(size=n)
    X = pd.DataFrame({"x": x, "level": [f"level {k}" for k in level]})
    is_new = level >= 0.5 * n_levels
    settings = {"kernel": "rbf", "input_transform": "standardize", "effort__n_models": 1}
    for objective in ("crps", None):
        model = made(**settings, objective=objective, effort__n_points=150, random_state=0)
        model.fit(X[~is_new], y[~is_new])
        covered = model.calibration(X[is_new], y[is_new]).coverage_at(0.9)
        assert 0.75 < covered <= 1.0
        known = model.predict(X[~is_new][:20], return_std=True)[1]
        new = model.predict(X[is_new][:20], return_std=True)[1]
        assert new.mean() > 1.5 * known.mean()


# ---- what becomes of columns ----


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ([None] * 100, "all cells are missing"),
        (["one"] * 100, "constant"),
        ([7.5] * 100, "constant"),
        ([f"id {k}" for k in range(100)], "nearly every row has a level of its own"),
    ],
)
def test_columns_without_use_are_left_out_with_a_note(column, why):
    X = pd.DataFrame({"x": np.arange(100.0), "c": ["u", "v"] * 50, "useless": column})
    model = untuned().fit(X, np.arange(100.0))
    assert model.encoding_[2]["became"] == f"left out: {why}"
    assert f"left out: {why}" in model.describe()
    assert np.array_equal(model.predict(X), model.predict(X.drop(columns="useless")))
    assert model.importance().values[2] == 0.0


def test_a_table_without_a_useful_column_is_refused():
    X = pd.DataFrame({"a": [None] * 30, "b": ["same"] * 30})
    message = "No column of X is of use: 'a' is left out: all cells are missing; 'b' is left out: "
    with pytest.raises(ValueError, match="^" + re.escape(message + "constant. Give one that")):
        untuned().fit(X, np.arange(30.0))


def test_few_unreadable_cells_are_missing_and_many_make_a_category():
    cells = [str(k / 7) for k in range(400)]
    cells[7] = cells[9] = "broken"
    X = pd.DataFrame({"x": cells, "c": ["u", "v"] * 200})
    model = untuned().fit(X, np.arange(400.0))
    assert "2 unreadable cells are missing: 'broken'" in model.encoding_[0]["became"]
    X["x"] = [str(k % 8) for k in range(400)]
    X.loc[:30, "x"] = "odd"
    found = "Column 'x' holds numbers, but 31 of 400 cells are none: 'odd'. "
    taken = "They count as missing; declare the column if it is a category: "
    with pytest.warns(UserWarning, match="^" + re.escape(f"{found}{taken}categorical_f")) as said:
        model = untuned().fit(X, np.arange(400.0))
    assert len(said) == 1
    assert kinds(model)["x"] == "number"
    # Numbers that do not repeat are no names.
    numbers = pd.DataFrame({"x": cells, "c": ["u", "v"] * 200})
    numbers.loc[:50, "x"] = [f"bad {k}" for k in range(51)]
    with pytest.warns(UserWarning, match="^Column 'x' holds numbers, but 51 of 400 cells are none"):
        model = untuned().fit(numbers, np.arange(400.0))
    assert kinds(model)["x"] == "number"
    X.loc[:50, "x"] = "odd"
    found = "Column 'x' holds numbers, but 51 of 400 cells are none: 'odd'. "
    taken = "It is taken as a category; make these cells missing to have numbers."
    with pytest.warns(UserWarning, match="^" + re.escape(found + taken)) as said:
        model = untuned().fit(X, np.arange(400.0))
    assert len(said) == 1
    assert kinds(model)["x"] == "category"


def test_words_among_queries_are_missing_whatever_their_share():
    cells = [str(k / 7) for k in range(100)]
    cells[3] = "rotary"
    X = pd.DataFrame({"x": cells, "z": np.arange(100.0)})
    model = untuned().fit(X, np.arange(100.0))
    few = model.predict(X[2:5])
    many = pd.concat([X[2:5], X[3:4], X[3:4], X[3:4]])
    np.testing.assert_array_equal(model.predict(many)[:3], few)
    message = "Column 'x' held numbers when the model was fitted, and now holds categories"
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        model.predict(X[3:4])


def test_mixed_types_in_one_column_are_texts_or_one_clear_error():
    X = np.array([["a", 1], [2.5, 2], [True, 3], ["b", 4], ["a", 5], ["c", 6]] * 5, dtype=object)
    assert kinds(untuned().fit(X, np.arange(30.0)))["x0"] == "category"
    X[3, 0] = [1, 2]
    with pytest.raises(TypeError, match=r"^Column 'x0' has a list in row 3: a cell must be"):
        untuned().fit(X, np.arange(30.0))


def test_infinite_numbers_are_refused():
    X = pd.DataFrame({"c": ["a", "b", "c"], "x1": [1.0, np.inf, 2.0]})
    with pytest.raises(ValueError, match=r"^Column 'x1' of X contains infinity or a value"):
        untuned().fit(X, [1.0, 2.0, 3.0])


def test_times_of_day_are_shown_to_the_minute():
    times = [dt.time(0), dt.time(0, 1), dt.time(12, 30), dt.time(23, 59), dt.time(23, 59, 45)]
    X = pd.DataFrame({"at": times})
    encoder, inputs = fit_table(X, np.arange(5.0)[:, None])
    shown = [encoder.encodings[0].show(row[encoder.spans[0]]) for row in inputs]
    assert shown == ["00:00", "00:01", "12:30", "23:59", "00:00"]


# ---- no leak ----


def test_pure_noise_of_many_levels_does_not_improve_leave_one_out_nor_intervals():
    rng = np.random.default_rng(3)
    n = 800
    x = rng.uniform(size=n)
    y = np.sin(6 * x) + 0.5 * rng.normal(size=n)
    noise = rng.integers(0, 150, n).astype(str)
    inputs = pd.DataFrame({"x": x, "noise": noise, "c": "k"})
    half = n // 2
    for max_p in (None, 1.0):  # as it is, and with the category kept by force
        with pytest.MonkeyPatch.context() as patch:
            if max_p is not None:
                patch.setattr("lsgp.inputs.encoding.level_effects.LARGEST_P", max_p)
            model = LSGPRegressor(
                random_state=0, effort=Effort(n_models=1, n_points=300), kernel="rbf"
            )
            model.fit(inputs[:half], y[:half])
        plain = LSGPRegressor(random_state=0, effort=Effort(n_models=1, n_points=300), kernel="rbf")
        plain.fit(x[:half, None], y[:half])
        assert model.loo().calibration.rmse > 0.97 * plain.loo().calibration.rmse
        scores = model.calibration(inputs[half:], y[half:])
        assert 0.85 < scores.coverage_at(0.9) < 0.95


def test_groups_are_left_out_of_the_statistics_of_their_own_rows():
    rng = np.random.default_rng(0)
    n = 600
    shop = rng.integers(0, 60, n)
    X = pd.DataFrame({"x": rng.normal(size=n), "shop": [f"s{k}" for k in shop]})
    y = rng.normal(size=60)[shop] + 0.1 * rng.normal(size=n)
    encoder, inputs = fit_table(X, y[:, None], groups=shop.astype(np.int32))
    values = inputs[:, encoder.spans[1]][:, 0]
    # All rows of a level are one group: nothing is known of it without them.
    assert np.ptp(values) < 1e-9


# ---- all that estimators can do ----


def test_importance_has_one_bar_per_column_and_effects_know_levels(fitted):
    model, X, _ = fitted
    found = model.importance()
    assert found.names == list(X.columns)
    assert set(np.array(found.names)[found.order[:4]]) == {"size", "color", "shop", "grade"}
    color, size, day = model.effects(["color", "size", "day"])
    assert set(color.levels) == {"red", "green", "blue"}
    assert color.levels[int(np.argmax(color.effect))] == "red"
    assert color.direction == "differs"
    assert size.direction == "rises"
    assert day.grid[0] >= 18262  # days from 1970 of 2020


def test_cycles_of_dates_have_effects_of_their_own():
    days = pd.date_range("2018-01-01", periods=900)
    weekend = 3.0 * np.asarray(days.day_of_week >= 5)
    season = 2.0 * np.sin(2 * np.pi * np.asarray(days.day_of_year) / 365.25)
    model = LSGPRegressor(
        objective=None, hyperparameters=Hyperparameters(lengthscale=2.0, noise_variance=0.01)
    )
    model.fit(pd.DataFrame({"day": days}), weekend + season)
    season, week = model.effects(["day: day of year", "day: weekday"])
    assert abs(season.grid[np.argmax(season.effect)] - 91) < 40
    assert week.levels[5:] == ("Sat", "Sun")
    assert week.effect[5:].min() > week.effect[:5].max() + 1.0


def test_gradients_are_of_numbers_alone(fitted):
    model, X, _ = fitted
    # What is not known of a level widens the prediction, and does not depend on numbers.
    whole = X.dropna().iloc[:5].assign(shop="never seen before")
    gradient, of_std = model.predict_gradient(whole, return_std=True)
    assert gradient.shape == of_std.shape == (5, 7)
    step = 1e-5
    moved = whole.assign(size=whole["size"] + step)
    before, after = (model.predict(table, return_std=True) for table in (whole, moved))
    for found, low, high in zip((gradient, of_std), before, after, strict=True):
        np.testing.assert_allclose(found[:, 0], (high - low) / step, rtol=1e-3, atol=1e-4)
    assert np.isnan(gradient[:, [1, 2, 4, 5]]).all()
    assert np.isnan(model.predict_gradient(X[X["size"].isna()].iloc[:3])[:, 0]).all()


def test_everything_else_takes_the_table(fitted):
    model, X, y = fitted
    assert model.calibration(X, y).rmse < y.std()
    assert len(model.explain(X.iloc[:3])) == 3
    assert model.sample_prior(X.iloc[0], X.iloc[:4], random_state=0).shape == (5, 4)
    assert np.isfinite(model.local_log_marginal_likelihood(X.iloc[:2])).all()
    assert "effect of its level on the target" in model.describe()
    assert "effect of its level on the target" in model._html()
    assert len(model.predict(X.iloc[:0])) == 0


def test_several_targets_have_a_number_each():
    X, y = mixed()
    model = untuned().fit(X, np.column_stack([y, -y, np.cos(y)]))
    shop = next(each for each in model.encoding_ if each["column"] == "shop")
    assert sum("effect on target" in name for name in shop["inputs"]) >= 2
    assert model.predict(X).shape == (300, 3)


def test_classes_of_mixed_tables():
    X, y = mixed(400)
    labels = np.where(y > np.median(y), "high", "low")
    model = LSGPClassifier(objective=None).fit(X, labels)
    assert np.mean(model.predict(X) == labels) > 0.8
    new = X.iloc[:5].assign(shop="new shop")
    # Nothing is known of it: probabilities are nearer to one half.
    sure, unsure = (np.abs(model.predict_proba(each)[:, 0] - 0.5) for each in (X.iloc[:5], new))
    assert unsure.mean() < sure.mean()
    explained = model.explain(new)
    total = explained.start + explained.contributions.sum(axis=1) + explained.others
    np.testing.assert_allclose(total, model.predict_proba(new), rtol=1e-6)
    model.partial_fit(new, labels[:5])
    assert model.predict(new).shape == (5,)
    tuned = LSGPClassifier(random_state=0, effort=Effort(n_models=1, n_points=100), kernel="rbf")
    tuned.fit(X, pd.cut(y, 3, labels=["a", "b", "c"]).astype(str))
    assert tuned.predict_proba(X).shape == (400, 3)


def test_new_levels_come_with_more_rows():
    X, y = mixed(400)
    model = untuned().fit(X[:300], y[:300])
    rest = X[300:].assign(shop="a new shop")
    before = model.predict(rest)
    model.partial_fit(rest[:80], np.full(80, 9.0))
    # It has learnt what the new shop is like.
    assert np.abs(model.predict(rest[80:]) - 9.0).mean() < np.abs(before[80:] - 9.0).mean() / 2
    assert model.ensemble_.n_rows == 380
    model.partial_fit(rest[80:], np.full(20, 9.0), sample_weight=[0.0] * 10 + [1.0] * 10)
    assert model.ensemble_.n_rows == 390


def test_rows_of_new_levels_count_by_their_weight():
    X, y = mixed(400)
    rest, own = X[300:].assign(shop="a new shop"), np.where(np.arange(100) % 2, 9.0, -9.0)
    effects = []
    for weight in (np.ones(100), np.where(own > 0, 20.0, 1.0), np.where(own > 0, 1.0, 20.0)):
        model = untuned().fit(X[:300], y[:300]).partial_fit(rest, own, sample_weight=weight)
        encoder = model.ensemble_.encoder
        shop = encoder.spans[encoder.names.index("shop")]
        effects.append(encoder.encode(rest[:1])[0, shop.start])
    assert effects[2] < effects[0] - 1.0 < effects[1] - 2.0


def test_levels_never_seen_are_as_uncertain_in_all_units():
    X, y = mixed()
    ensemble = untuned().fit(X, 10.0 * y).ensemble_
    queries = ensemble.encoder.encode(X[:5].assign(shop="a new shop"))
    unit = ensemble.target_scaler.std[0]
    scaled = PredictiveDistribution(np.zeros((5, 1)), np.full((5, 1), 0.3))
    plain = PredictiveDistribution(np.zeros(5), np.full(5, 0.3 * unit))
    expected = widen(ensemble, queries, plain).scale
    assert (expected > 0.4 * unit).all()
    found = widen_scaled(ensemble, queries, scaled).scale[:, 0] * unit
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_of_no_weight_do_not_count():
    X, y = mixed(400)
    weight = (np.arange(400) < 300).astype(float)
    spoiled = y.copy()
    spoiled[300:] = 1e6
    one = untuned().fit(X, spoiled, sample_weight=weight)
    two = untuned().fit(X[:300], y[:300], sample_weight=np.ones(300))
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9)


def test_a_file_and_a_pickle_keep_the_encoder(fitted, tmp_path):
    model, X, y = fitted
    unseen = X.iloc[:20].assign(color="never seen", shop="nor this")
    for queries in (X, unseen):
        expected = model.predict(queries, return_std=True)
        model.save(tmp_path / "model.lsgp")
        for other in (
            LSGPRegressor.load(tmp_path / "model.lsgp"),
            pickle.loads(pickle.dumps(model)),
        ):
            assert np.array_equal(other.predict(queries, return_std=True), expected)
            assert other.encoding_ == model.encoding_
            assert list(other.feature_names_in_) == list(X.columns)
            assert other.n_features_in_ == 7
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    loaded.partial_fit(unseen, y[:20])
    assert np.isfinite(loaded.predict(unseen)).all()


def test_hundreds_of_thousands_of_levels_take_little_memory_and_time():
    n = 200_000
    rng = np.random.default_rng(0)
    levels = np.array([f"{k:06d}x" for k in range(n // 2)], dtype=object)
    X = pd.DataFrame({"id": rng.permutation(np.tile(levels, 2)), "x": rng.normal(size=n)})
    y = rng.normal(size=(n, 1)) + X[["x"]].to_numpy()
    encoder, inputs = fit_table(X, y)
    assert inputs.shape[0] == n
    assert encoder.encode(X.iloc[:10]).shape == (10, inputs.shape[1])
