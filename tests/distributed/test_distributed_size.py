# SPDX-License-Identifier: BSD-3-Clause
"""A hundred thousand rows in partitions, and row numbers of more than 32 bits."""

import numpy as np
import pytest
from agreement import assert_agree, chunked

import lsgp.distributed
from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.backends import BACKENDS
from lsgp.backends.contract import Resources
from lsgp.distributed import rows as tasks
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.partitioning import Boxes, Regions, split
from lsgp.distributed.rows import Rows
from lsgp.distributed.search import ClusterIndex, RowStore
from lsgp.distributed.space import ClusterSpace, Columns
from lsgp.inputs.settings import specify
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import build_index
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.space import Space

pytestmark = pytest.mark.usefixtures("client")

rng = np.random.default_rng(8)
N = 100_000
X = rng.normal(size=(N, 2)) ** 3
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
NEW = np.concatenate([X[:100] + 0.01, rng.normal(size=(100, 2)) ** 3])
LABELS = np.digitize(Y, [-0.5, 0.5])

CASES = {
    "neighbors": (LSGPRegressor, {"n_neighbors": 32}, Y),
    "radius": (LSGPRegressor, {"localizer__bandwidth": 0.008, "n_neighbors": "auto"}, Y),
    "large neighborhoods": (LSGPRegressor, {"n_neighbors": 700}, Y),
    "classes": (LSGPClassifier, {"n_neighbors": 32, "random_state": 0}, LABELS),
}


def ask(model, queries, y):
    if y is LABELS:
        return (model.predict_proba(queries),)
    return model.predict(queries, return_std=True)


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_thousand_rows_predict_as_on_one_machine_in_any_partitions(name):
    kind, settings, y = CASES[name]
    settings = {"objective": None, **settings}
    queries = NEW if settings["n_neighbors"] == 32 else NEW[::10]
    expected = ask(kind().set_params(**settings).fit(X, y), queries, y)
    for n_partitions in (1, 3, 17):
        rows = chunked(X, 25_000), chunked(y, 25_000)
        own = kind().set_params(**settings)
        model = lsgp.distributed.fit(own, *rows, n_partitions=n_partitions)
        assert model.n_partitions == n_partitions
        assert_agree(ask(model, queries, y), expected)


# -- more rows than 32 bits can number ---------------------------------------------------------

FAR = 2**33


@pytest.fixture
def far(client):
    """Rows in three partitions whose numbers start at 2³³, and the same rows at hand."""
    rows = X[:600]
    chunk = Rows(np.arange(600), rows, Y[:600, None], np.ones(600))
    pieces = split(chunk, FAR, Regions.of_sample(rows, 3))
    cluster = Cluster(client)
    own = [tasks.Summary.of(piece) for piece in pieces]
    boxes = Boxes(np.array([each.X.low for each in own]), np.array([each.X.high for each in own]))
    futures = [cluster.submit("part", Rows.join, [piece]) for piece in pieces]
    return RowStore(cluster, futures, [each.n for each in own], boxes), rows


def test_rows_are_cut_found_and_fetched_by_numbers_of_64_bits(far):
    store, own = far
    wanted = FAR + np.array([5, 3, 599, 3])
    np.testing.assert_array_equal(store.rows(wanted).X, own[[5, 3, 599, 3]])
    index = ClusterIndex(store, fit_transform_kind(own, (None, None)), np.ones(2))
    here = build_index(own, np.ones(2))
    rows = np.arange(0, 600, 7)
    found = index.measure(SearchRequest(own[rows], np.ones(2), 9, Exclusions(FAR + rows)))
    left_out = Exclusions(rows.astype(np.int32))
    expected = here.measure(SearchRequest(own[rows], np.ones(2), 9, left_out))
    np.testing.assert_array_equal(found.neighbors, FAR + expected.neighbors.astype(np.int64))
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_samples_of_far_rows_are_those_of_near_ones(far):
    store, own = far
    transform = fit_transform_kind(own, (None, None))
    model = specify(LSGPRegressor(kernel="rbf").get_params(deep=False), 2).model
    arrays = [
        Columns(store, (FAR + 600, *shape), np.dtype(float), of_rows)
        for shape, of_rows in (
            ((2,), lambda rows: rows.X),
            ((1,), lambda rows: rows.y),
            ((), lambda rows: rows.noise),
        )
    ]
    rest = (BACKENDS["reference"], Resources(1, 10**9, 0))
    space = ClusterSpace(transform, *arrays, ClusterIndex(store, transform, np.ones(2)), *rest)
    targets = np.array([4, 77, 512])
    far_targets = FAR + targets
    part, sample = space.at_hand(space.sample(model, Layer(far_targets), far_targets, 11))
    y, noise = Y[:600, None], np.ones(600)
    here = Space(transform, own, y, noise, build_index(own, np.ones(2)), *rest)
    own_targets = targets.astype(np.int32)
    expected = here.sample(model, Layer(own_targets), own_targets, 11)
    assert sample.neighbors.dtype == np.int32
    np.testing.assert_array_equal(part.X[sample.neighbors], own[expected.neighbors])
    np.testing.assert_array_equal(part.y[sample.targets], Y[targets, None])


def test_copies_are_groups_wherever_they_are():
    own = [0, 1, 0, 2, 1]
    rows = tasks.mark_copies(Rows(FAR + np.arange(5), X[own], Y[own, None], np.ones(5)))
    assert rows.groups[0] == rows.groups[2] >= 0
    assert rows.groups[1] == rows.groups[4] >= 0
    assert sorted(set(rows.groups.tolist())) == [-1, 0, 1]
    assert tasks.n_groups(rows) == 2
    assert sorted(set(tasks.renumber_groups(rows, 7).groups.tolist())) == [-1, 7, 8]
