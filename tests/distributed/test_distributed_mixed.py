# SPDX-License-Identifier: BSD-3-Clause
"""Tables with texts, dates and holes on a cluster: the encodings of one machine."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from agreement import assert_agree, fit_both
from sklearn.base import clone

import lsgp.distributed
from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.distributed import reading
from lsgp.inputs.encoding.cells import cells_of
from lsgp.inputs.encoding.columns import Contents

pytestmark = pytest.mark.usefixtures("client")

N = 1500
GIVEN = {"objective": None, "n_neighbors": 20}
rng = np.random.default_rng(4)


def table(n=N, seed=0):
    """One column of each kind; a category of many levels, of which some come late, and holes."""
    own = np.random.default_rng(seed)
    shop = np.sort(own.integers(0, 90, n) // own.integers(1, 4, n))
    frame = pd.DataFrame(
        {
            "size": own.normal(size=n),
            "age": own.gamma(2.0, size=n),
            "color": own.choice(["red", "green", "blue"], n),
            "shop": [f"shop {k}" for k in shop],
            "day": pd.Timestamp("2021-03-01") + pd.to_timedelta(own.integers(0, 900, n), unit="D"),
            "price": np.where(own.uniform(size=n) < 0.995, own.integers(0, 50, n).astype(str), "-"),
            "level": pd.Categorical.from_codes(
                own.integers(0, 3, n), ["low", "mid", "high"], ordered=True
            ),
            "serial": [f"no. {k}" for k in range(n)],
        }
    )
    frame.loc[own.uniform(size=n) < 0.1, "size"] = np.nan
    frame.loc[own.uniform(size=n) < 0.05, "shop"] = None
    frame.loc[own.uniform(size=n) < 0.02, "day"] = pd.NaT
    effect = np.random.default_rng(9).normal(size=90)[shop]
    y = frame["size"].fillna(0.3) + effect + (frame["color"] == "red") + 0.1 * own.normal(size=n)
    return frame, y.rename("value")


QUERIES = table(200, 7)[0]
QUERIES.loc[3, "shop"] = "never seen"


def assert_same_encoder(own, other):
    assert [each.said for each in own.encodings] == [each.said for each in other.encodings]
    assert own.inputs == other.inputs
    for name in ("imputation", "adjustment"):
        for column in ("center", "scale", "coefficients"):
            assert_agree(getattr(getattr(own, name), column), getattr(getattr(other, name), column))
    for a, b in zip(own.encodings, other.encodings, strict=True):
        for column in ("sums", "counts", "means", "shrinkage", "variance"):
            if hasattr(a, column):
                assert_agree(getattr(a, column), getattr(b, column))
        if hasattr(a, "levels"):
            assert a.levels == b.levels


@pytest.mark.parametrize("n_partitions", [1, 3, 17])
def test_mixed_tables_are_encoded_and_predicted_as_on_one_machine(n_partitions, in_parts, tmp_path):
    frame, y = table()
    one = LSGPRegressor().set_params(**GIVEN).fit(frame, y)
    lazy = dd.from_pandas(frame.assign(value=y), npartitions=min(n_partitions, 5))
    model = lsgp.distributed.fit(
        LSGPRegressor().set_params(**GIVEN), lazy, "value", n_partitions=n_partitions
    )
    assert_same_encoder(model.estimator.ensemble_.encoder, one.ensemble_.encoder)
    expected = one.predict(QUERIES, return_std=True)
    assert_agree(model.predict(QUERIES, return_std=True), expected)
    lazily = model.predict(dd.from_pandas(QUERIES, npartitions=2))
    assert_agree(lazily.compute(), expected[0])
    if n_partitions == 3:
        model.save(tmp_path / "model")
        loaded = lsgp.distributed.DistributedModel.load(tmp_path / "model")
        assert_agree(loaded.predict(QUERIES), expected[0])


@pytest.mark.parametrize("n_partitions", [1, 3, 17])
def test_labels_of_mixed_tables_with_weights_and_groups(n_partitions, in_parts):
    frame, y = table()
    label = pd.Series(np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.8])], name="label")
    estimator = LSGPClassifier().set_params(**GIVEN, class_weight="balanced", random_state=0)
    weight = pd.Series(rng.uniform(-0.2, 1, N).clip(0))
    groups = pd.Series(np.arange(N) // 7)
    one = clone(estimator).fit(frame, label, sample_weight=weight, groups=groups)
    whole = frame.assign(label=label, weight=weight, groups=groups)
    lazy = dd.from_pandas(whole, npartitions=min(n_partitions, 5))
    beside = {"sample_weight": "weight", "groups": "groups"}
    model = lsgp.distributed.fit(estimator, lazy, "label", n_partitions=n_partitions, **beside)
    assert_same_encoder(model.estimator.ensemble_.encoder, one.ensemble_.encoder)
    assert_agree(model.predict_proba(QUERIES), one.predict_proba(QUERIES))
    np.testing.assert_array_equal(model.predict(QUERIES), one.predict(QUERIES))


def test_categories_may_have_other_dictionaries_in_each_partition(in_parts):
    frame, y = table()
    frame = frame[["age", "color"]]
    pieces = [
        frame.iloc[start : start + 500].astype({"color": "category"}).assign(value=y)
        for start in range(0, N, 500)
    ]
    pieces[1]["color"] = pieces[1]["color"].cat.reorder_categories(["red", "blue", "green"])
    pieces[2] = pieces[2].assign(color=pieces[2]["color"].cat.set_categories(["green", "red"]))
    whole = pd.concat([piece.astype({"color": object}) for piece in pieces])
    one = LSGPRegressor().set_params(**GIVEN).fit(whole[["age", "color"]], whole["value"])
    lazy = dd.from_delayed([dask.delayed(piece) for piece in pieces], verify_meta=False)
    model = lsgp.distributed.fit(LSGPRegressor().set_params(**GIVEN), lazy, "value", n_partitions=3)
    queries = QUERIES[["age", "color"]]
    assert_agree(model.predict(queries), one.predict(queries))


def test_holes_and_declared_categories_of_arrays(in_parts):
    X = np.column_stack([rng.normal(size=N), rng.integers(0, 5, N), rng.normal(size=N)])
    X[1200:, 0][rng.uniform(size=300) < 0.3] = np.nan  # in the last chunk alone
    y = np.nan_to_num(X[:, 0]) + X[:, 1] ** 2
    noise = rng.uniform(0.5, 2.0, N)
    estimator = LSGPRegressor().set_params(**GIVEN, categorical_features=[1])
    model, one = fit_both(estimator, X, y, size=400, noise_variance=noise)
    assert_agree(model.predict(X[-300:]), one.predict(X[-300:]))


def test_the_encoding_is_chosen_on_the_rows_of_one_machine():
    n = 10_400
    frame, y = table(n, 3)
    frame = frame[["size", "age", "color", "shop"]]
    estimator = LSGPRegressor().set_params(
        kernel="matern32",
        input_transform="standardize",
        localizer__reach=1.0,  # nodes are of rows in memory
        effort__boosting=False,  # and so are trees
        n_neighbors=10,
        effort__n_models=1,
        effort__n_points=30,
        random_state=0,
    )
    one = clone(estimator).fit(frame, y)
    lazy = dd.from_pandas(frame.assign(value=y), npartitions=4)
    model = lsgp.distributed.fit(estimator, lazy, "value", n_partitions=3)
    own, other = model.estimator.ensemble_, one.ensemble_
    assert_same_encoder(own.encoder, other.encoder)
    queries = QUERIES[["size", "age", "color", "shop"]]
    mean, std = one.predict(queries, return_std=True)
    assert np.sqrt(np.mean((model.predict(queries) - mean) ** 2)) < 0.05 * std.mean()


def test_partitions_that_contradict_each_other_are_refused():
    numbers = Contents("x", "number", 3, 0, 0)
    texts = Contents("x", "object", 3, 0, 0, ("a",), np.array([3]))
    with pytest.raises(ValueError, match=r"'x' is of type 'number' in some partitions.*'object'"):
        numbers.join(texts)
    empty = Contents("x", "object", 2, 2, 0)
    assert numbers.join(empty).type == empty.join(numbers).type == "number"
    assert numbers.join(empty).n_missing == 2


@pytest.mark.parametrize("n_chunks", [1, 2, 5, 8])
def test_levels_of_chunks_are_in_the_order_of_the_rows(n_chunks):
    cells = [f"l{k}" for k in rng.integers(0, 40, 100)]
    whole = Contents.of(cells_of(np.array(cells, object)[:, None])[0])
    chunks = np.array_split(np.array(cells, object)[:, None], n_chunks)
    (joined,) = reading.join_contents([[Contents.of(cells_of(chunk)[0])] for chunk in chunks])
    assert joined.distinct == whole.distinct
    assert joined.counts.tolist() == whole.counts.tolist()


def test_columns_of_too_many_texts_are_named(monkeypatch):
    monkeypatch.setattr(reading, "MOST_DISTINCT", 3)
    one, other = (
        [Contents("id", "object", 2, 0, 0, cells, np.array([1, 1]))] for cells in ("ab", "cd")
    )
    with pytest.raises(ValueError, match=r"Column 'id' has more than 3 distinct cells"):
        reading.join_contents([one, other])
