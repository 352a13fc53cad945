# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of Dask collections: lazy, in their chunks, and with the bits of one machine."""

import pickle
import time
import warnings
from types import SimpleNamespace

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import lsgp.distributed
from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.distributed import transfer

rng = np.random.default_rng(0)
X = rng.uniform(size=(300, 2))
Y = np.column_stack([np.sin(6 * X[:, 0]), X[:, 1] ** 2])
NEW = rng.uniform(size=(70, 2))
LABELS = np.where(Y[:, 0] > 0.2, "up", np.where(Y[:, 1] > 0.4, "mid", "down"))

FAST = {"objective": None, "n_neighbors": 30}
ONE = (
    LSGPRegressor()
    .set_params(**FAST)
    .fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y[:, 0], name="z"))
)
PLAIN = LSGPRegressor().set_params(**FAST).fit(X, Y[:, 0])
TWO = LSGPRegressor().set_params(**FAST).fit(X, Y)
CLASSES = LSGPClassifier().set_params(**FAST).fit(X, LABELS)

QUESTIONS = {
    "mean": (PLAIN, lambda m, q: m.predict(q)),
    "mean and std": (PLAIN, lambda m, q: m.predict(q, return_std=True)),
    "latent": (PLAIN, lambda m, q: m.predict(q, return_std=True, kind="latent")),
    "interval": (PLAIN, lambda m, q: m.predict_interval(q, level=0.8)),
    "two targets": (TWO, lambda m, q: m.predict(q, return_std=True)),
    "interval of two": (TWO, lambda m, q: m.predict_interval(q)),
    "labels": (CLASSES, lambda m, q: m.predict(q)),
    "probabilities": (CLASSES, lambda m, q: m.predict_proba(q)),
    "with std": (CLASSES, lambda m, q: m.predict_proba(q, return_std=True)),
    "log": (CLASSES, lambda m, q: m.predict_log_proba(q)),
}


def as_list(found):
    return list(found) if isinstance(found, tuple) else [found]


@pytest.fixture(scope="module")
def processes(quick_workers):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("name", QUESTIONS)
def test_collections_keep_their_parts_and_names_and_give_the_bits_of_one_machine(name):
    model, question = QUESTIONS[name]
    frame = pd.DataFrame(NEW, index=np.arange(0, 140, 2))
    array = da.from_array(NEW, chunks=((30, 0, 1, 39), (1, 1)))
    queries = dd.from_pandas(frame, npartitions=3)
    expected = as_list(question(model, NEW))
    answers = as_list(question(model, array)), as_list(question(model, queries))
    for found, parts, wanted in zip(*answers, expected, strict=True):
        assert isinstance(found, da.Array)
        assert found.chunks[0] == (30, 0, 1, 39)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.compute(scheduler="threads"), wanted)
        assert parts.divisions == queries.divisions
        values = parts.compute(scheduler="threads")
        assert values.index.equals(frame.index)
        np.testing.assert_array_equal(values.to_numpy(), wanted)
        if wanted.ndim == 2:
            names = ["y0", "y1"] if model is TWO else ["down", "mid", "up"]
            assert list(parts.columns) == names


def test_the_name_of_the_target_is_the_name_of_the_series():
    queries = dd.from_pandas(pd.DataFrame(NEW, columns=["a", "b"]), npartitions=2)
    assert [part.name for part in ONE.predict(queries, return_std=True)] == ["z", "z"]


def test_the_parts_of_a_distribution_are_those_of_one_machine():
    queries = da.from_array(NEW, chunks=((30, 40), 2))
    for model in (PLAIN, TWO):
        expected = model.predict_distribution(NEW)
        found = model.predict_distribution(queries)
        for part in ("mean", "scale", "dof"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        several = lsgp.distributed.predict_parts(model, queries, level=0.8)
        low, high = expected.interval(0.8)
        for part, wanted in zip(several, (expected.mean, expected.std, low, high), strict=True):
            np.testing.assert_array_equal(several[part], wanted)
            assert several[part].chunks[0] == (30, 40)
    only = lsgp.distributed.predict_parts(PLAIN, queries, ["mean"])["mean"]
    np.testing.assert_array_equal(only, PLAIN.predict(NEW))
    with pytest.raises(ValueError, match=r"parts has 'median', which is not one of 'mean'"):
        lsgp.distributed.predict_parts(PLAIN, queries, ["median"])


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        raise AssertionError

    queries = da.from_array(NEW, chunks=(20, 2)).map_blocks(fail, dtype=float, meta=NEW[:0])
    lazy = PLAIN.predict(queries)
    with pytest.raises(AssertionError):
        lazy.compute(scheduler="synchronous")


def test_unknown_chunk_sizes_stay_unknown():
    queries = da.from_array(NEW, chunks=(20, 2))
    some = queries[queries[:, 0] > 0.5]
    np.testing.assert_array_equal(PLAIN.predict(some), PLAIN.predict(NEW[NEW[:, 0] > 0.5]))


def test_collections_whose_chunks_would_be_refused_are_refused_at_once():
    wrong = dd.from_pandas(pd.DataFrame(NEW, columns=["b", "c"]), npartitions=2)
    for model, queries, options, message in (
        (PLAIN, da.ones((10, 3)), {}, "X has 3 features, but LSGPRegressor is expecting 2"),
        (ONE, wrong, {}, "X has no column 'a' that the model was fitted with"),
        (PLAIN, da.ones(10), {}, "X is a Dask array of 1 dimensions"),
        (PLAIN, da.ones((10, 2)), {"kind": "sum"}, "kind='sum' is not one of"),
        (PLAIN, da.ones((10, 2)), {"return_cov": True}, "X is a Dask collection, of parts that"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(queries, **options)


def test_a_saved_model_is_opened_once_per_process_by_its_path(tmp_path, processes):
    path = tmp_path / "model.lsgp"
    PLAIN.save(path)
    queries = da.from_array(NEW, chunks=(10, 2))
    found = lsgp.distributed.predict(path, queries, return_std=True)
    for part, wanted in zip(found, PLAIN.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(part.compute(), wanted)

    def n_open():
        return transfer._open.cache_info().currsize

    assert set(processes.run(n_open).values()) == {1}


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_questions_with_other_options_are_other_tasks(kind):
    queries = da.from_array(NEW, chunks=(30, 2))
    if kind == "frame":
        queries = dd.from_pandas(pd.DataFrame(NEW), npartitions=2)
    lazy = {level: PLAIN.predict_interval(queries, level=level) for level in (0.5, 0.95)}
    (found,) = dask.compute(lazy)
    for level, ends in found.items():
        expected = PLAIN.predict_interval(NEW, level=level)
        for own, wanted in zip(ends, expected, strict=True):
            np.testing.assert_array_equal(own, wanted)


def test_a_file_that_was_replaced_is_another_model(tmp_path, processes):
    path = tmp_path / "model.lsgp"
    other = LSGPRegressor().set_params(**FAST).fit(X, -Y[:, 0])
    queries = da.from_array(NEW, chunks=(10, 2))
    for model in (PLAIN, other):  # of as many bytes
        model.save(path)
        lazy = lsgp.distributed.predict(path, queries)
        np.testing.assert_array_equal(lazy.compute(), model.predict(NEW))


def test_a_file_that_is_gone_or_another_after_the_question_is_refused(tmp_path):
    path = tmp_path / "model.lsgp"
    for change, error, message in (
        (path.unlink, FileNotFoundError, r"model\.lsgp is not there on the worker"),
        (lambda: TWO.save(path), ValueError, r"model\.lsgp was replaced since the prediction was"),
    ):
        PLAIN.save(path)
        lazy = lsgp.distributed.predict(path, da.from_array(NEW, chunks=(10, 2)))
        transfer._open.cache_clear()  # as in a worker that has yet to open it
        change()
        with pytest.raises(error, match=message):
            lazy.compute(scheduler="synchronous")


def test_a_model_in_memory_is_sent_to_each_worker_once(processes):
    model = LSGPRegressor().set_params(**FAST).fit(X, Y[:, 0])
    queries = da.from_array(NEW, chunks=(10, 2))
    for _ in range(2):
        np.testing.assert_array_equal(model.predict(queries).compute(), model.predict(NEW))
    assert len(transfer._sent[model.ensemble_].futures) == 1
    (future,) = transfer._sent[model.ensemble_].futures.values()
    assert len(processes.who_has([future])[future.key]) == 2
    frame = dd.from_pandas(pd.DataFrame(NEW), npartitions=3)
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(NEW))


def test_other_processes_without_a_cluster_get_the_model_by_a_file():
    held = transfer.ModelInProcess(PLAIN, "token")
    opened = pickle.loads(pickle.dumps(held)).open()
    assert opened is not PLAIN
    np.testing.assert_array_equal(opened.predict(NEW), PLAIN.predict(NEW))


@pytest.mark.parametrize("is_frame", [False, True])
def test_a_graph_has_few_bytes_for_each_partition_and_no_model(is_frame, processes, tmp_path):
    n = 2_000
    if is_frame:
        queries = dd.from_map(_zeros, range(n), meta=_zeros(0))
    else:
        queries = da.zeros((n * 20, 2), chunks=(20, 2))
    model = LSGPRegressor().set_params(**FAST).fit(X, Y[:, 0])
    path = tmp_path / "model.lsgp"
    model.save(path)
    for given in (path,) if is_frame else (model, path):
        (lazy,) = dask.optimize(lsgp.distributed.predict(given, queries))
        graph = dict(lazy.__dask_graph__())
        assert len(graph) >= n
        pickled = cloudpickle.dumps(graph)
        # Whatever the size of the model: nothing of its ensemble is there.
        assert len(pickled) < 500 * n
        assert b"NeighborIndex" not in pickled
        assert b"FittedModel" not in pickled


def _zeros(k):
    return pd.DataFrame(np.zeros((20, 2)))


def test_a_task_uses_one_thread_of_the_core():
    seen = []

    def predict(X, **options):
        seen.append(options)
        return X[:, 0]

    shell = SimpleNamespace(n_jobs=8, verbose=1, predict=predict)
    estimator = transfer.opened(shell)
    assert (estimator.n_jobs, estimator.verbose) == (1, 0)
    assert shell.n_jobs == 8


def test_chunked_arrays_of_xarray_keep_chunks_coordinates_and_names():
    xarray = pytest.importorskip("xarray")
    coords = {"station": [f"s{k}" for k in range(70)], "height": ("station", np.arange(70.0))}
    queries = xarray.DataArray(
        da.from_array(NEW, chunks=((30, 40), 2)),
        {**coords, "input": ["a", "b"]},
        ("station", "input"),
    )
    mean, std = PLAIN.predict(queries, return_std=True)
    assert (mean.dims, mean.chunks, mean.name, std.name) == (
        ("station",),
        ((30, 40),),
        "y",
        "y_std",
    )
    assert set(mean.coords) == {"station", "height"}
    expected = PLAIN.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, expected[0])
    np.testing.assert_array_equal(std, expected[1])
    proba = CLASSES.predict_proba(queries)
    assert proba.dims == ("station", "class")
    assert proba.coords["class"].to_numpy().tolist() == ["down", "mid", "up"]
    np.testing.assert_array_equal(proba, CLASSES.predict_proba(NEW))
    low, high = TWO.predict_interval(queries)
    assert (low.dims, low.name, high.name) == (("station", "target"), "low", "high")
    in_memory = PLAIN.predict(queries.compute())
    assert isinstance(in_memory, np.ndarray)


def test_warnings_of_workers_reach_the_client_once(processes):
    rows = np.repeat(X[:20], 30, axis=0)
    model = LSGPRegressor(
        objective=None,
        n_neighbors=30,
        hyperparameters=Hyperparameters(noise_variance=1e-18),
        kernel="rbf",
    )
    model.fit(rows, np.repeat(Y[:20, 0], 30), sample_weight=np.ones(600))
    with pytest.warns(UserWarning, match=r"local systems needed jitter") as told:
        expected = model.predict(X[:20])
    assert len(told) == 1
    queries = da.from_array(X[:20], chunks=(4, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.predict(queries).compute()
        deadline = time.monotonic() + 5
        while not _jittered(caught) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
    np.testing.assert_array_equal(found, expected)
    assert len(_jittered(caught)) == 1


def _jittered(caught):
    return [each for each in caught if "needed jitter" in str(each.message)]
