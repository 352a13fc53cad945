# SPDX-License-Identifier: BSD-3-Clause
"""Gaps of a map that are mirrored to tune for, and what is tuned on them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree

import lsgp.tuning.beyond.mirrors
from lsgp import LSGPRegressor
from lsgp.inputs.transforms import Rotation
from lsgp.method.contract import LocalModel
from lsgp.method.distribution import PredictiveDistribution
from lsgp.search.index import build_index
from lsgp.tuning.beyond.competition import _in_gaps
from lsgp.tuning.beyond.mirrors import draw_alike, mirror_gaps
from lsgp.tuning.beyond.plan import SHARE_ACROSS_GAPS, SHORT_IN_GAPS
from lsgp.tuning.beyond.regions import Layer, Regions
from lsgp.tuning.contender import Contender, Start
from lsgp.tuning.objective import OBJECTIVES
from lsgp.tuning.stages.gaps import _across_gaps, _thinned, _within_gaps

#: A map of few rows: all of it is for maps of many.
FEW = 1500
#: Where a disk near a corner, and a bay at an edge, are not observed.
CENTER, RADIUS = np.array([0.3, 0.35]), 0.12


@pytest.fixture(autouse=True)
def _maps_of_few_rows(monkeypatch):
    monkeypatch.setattr(lsgp.tuning.beyond.mirrors, "FEWEST_FOR_MIRRORS", 500)


def in_gaps(X):
    in_disk = np.linalg.norm(X - CENTER, axis=1) < RADIUS
    return in_disk | ((X[:, 1] > 0.85) & (np.abs(X[:, 0] - 0.6) < 0.15))


def cut_map(n=FEW, seed=0):
    """Rows and queries of the unit square, whose corners are there."""
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    X[:2] = [[0.0, 0.0], [1.0, 1.0]]
    return X[~in_gaps(X)], X[in_gaps(X)]


def mirrors_of(X, queries, groups=None, seed=0):
    index = build_index(X, np.ones(X.shape[1]))
    return mirror_gaps(X, index, queries, groups, np.random.default_rng(seed))


def test_points_are_drawn_that_are_as_far_as_wanted():
    rng = np.random.default_rng(0)
    distances, wanted = rng.uniform(0.0, 10.0, 4000), rng.exponential(2.0, 500)
    chosen = draw_alike(distances, wanted, 400, rng)
    assert len(np.unique(chosen)) == len(chosen) > 300
    shares = [0.1, 0.25, 0.5, 0.75, 0.9]
    found = np.quantile(distances[chosen], shares)
    np.testing.assert_allclose(found, np.quantile(wanted, shares), rtol=0.15)
    # Of what is farther than all, the farthest; of equal distances, any of them.
    assert set(draw_alike(distances, np.array([99.0]), 5, rng)) == {int(np.argmax(distances))}
    assert len(draw_alike(np.ones(100), np.ones(9), 50, rng)) > 30


def test_mirrored_gaps_are_empty_and_their_rows_as_far_as_the_queries():
    X, queries = cut_map(6000)
    mirrors = mirrors_of(X, queries)
    wanted = np.quantile(cKDTree(X).query(queries)[0], [0.25, 0.5, 0.75, 0.9])
    for regions in mirrors:
        near = np.concatenate(
            [cKDTree(X[number < 0]).query(X[targets])[0] for number, targets in regions.layers]
        )
        assert np.abs(np.log(np.quantile(near, [0.25, 0.5, 0.75, 0.9]) / wanted)).max() < 0.3
        assert all((number[targets] == 0).all() for number, targets in regions.layers)
        assert len(regions.of_targets) == len(regions.targets)
    # Some are mirrored, without a shift: then the whole disk is empty, but for its rim.
    centers = [np.where(flip, 1.0 - CENTER, CENTER) for flip in ([1, 0], [0, 1], [1, 1])]
    disks = [np.linalg.norm(X - center, axis=1) < 0.9 * RADIUS for center in centers]
    held_out = [layer.number == 0 for layer in mirrors.judging.layers]
    assert any(held[disk].all() for held in held_out for disk in disks)
    assert all(held.mean() < 0.2 for held in held_out)


def test_rows_that_judge_are_others_than_those_that_are_tuned_on():
    X, queries = cut_map(6000)
    judging, tuning = mirrors_of(X, queries)
    pairs = zip(judging.layers, tuning.layers, strict=True)
    assert all(np.array_equal(one.number, other.number) for one, other in pairs)
    assert np.isin(judging.targets, tuning.targets).mean() < 0.9


def test_chance_is_judged_by_parts_of_the_map():
    X, queries = cut_map(6000)
    regions = mirrors_of(X, queries).judging
    sizes = np.bincount(regions.of_targets)
    assert regions.n_regions == len(sizes) >= 30
    assert sizes.min() > 0.5 * sizes.mean()
    widths = [np.ptp(X[regions.targets[regions.of_targets == k]], axis=0) for k in range(12)]
    assert np.mean(widths) < 0.5


def test_rows_of_a_group_are_in_a_gap_together():
    X, queries = cut_map()
    cells = np.floor(20.0 * X) @ [20.0, 1.0]
    groups = np.where(np.arange(len(X)) % 3, cells, -1.0).astype(np.int32)
    for number, _ in mirrors_of(X, queries, groups).judging.layers:
        held = np.unique(groups[number == 0])
        assert (number[np.isin(groups, held[held >= 0])] == 0).all()


def test_where_mirrors_are_not_like_the_queries_there_are_none():
    X, queries = cut_map()
    assert mirrors_of(X[:400], queries) is None
    wide = np.column_stack([X, X])
    assert mirrors_of(wide, np.column_stack([queries, queries])) is None
    # As many as half of the rows fall on queries that surround all of them.
    angle = np.linspace(0.0, 2.0 * np.pi, 4000)
    around = 0.5 + 5.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    assert mirrors_of(X, around) is None


def striped(X, seed=0):
    """A field that varies across a diagonal ten times as fast as along it."""
    rng = np.random.default_rng(seed)
    across, along = X @ [0.5, -(0.75**0.5)], X @ [0.75**0.5, 0.5]
    waves = rng.normal(size=(60, 2)) * [12.0, 1.2]
    phases = rng.uniform(0.0, 2.0 * np.pi, 60)
    return np.cos(np.column_stack([across, along]) @ waves.T + phases).sum(axis=1) / 30**0.5


@pytest.fixture(scope="module")
def fitted():
    """Fits of stripes on one thread and on three, and without queries."""
    X, queries = cut_map()
    settings = {"random_state": 0, "n_tuning_points": 60, "n_models": 2, "n_neighbors": 30}
    settings |= {"kernel": "matern32", "input_transform": "standardize"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsgp.tuning.beyond.mirrors, "FEWEST_FOR_MIRRORS", 500)
        patch.setattr(lsgp.tuning.beyond.mirrors, "N_MIRRORED_TARGETS", 400)
        known = [
            LSGPRegressor(n_jobs=n_jobs, **settings).fit(X, striped(X), queries=queries)
            for n_jobs in (1, 3)
        ]
    return queries, *known, LSGPRegressor(**settings).fit(X, striped(X))


def test_a_fit_for_gaps_finds_the_direction_of_what_it_sees(fitted):
    queries, known, _, plain = fitted
    projection = known.ensemble_.projection
    assert isinstance(projection, Rotation)
    angle, _, ratio = projection.described(*known.ensemble_.heaviest.lengthscale_of_inputs)
    assert abs(angle - 60.0) < 8.0
    assert ratio < 0.4
    assert all(model.transform.projection == projection for model in known.ensemble_.models)
    errors = [np.mean((m.predict(queries) - striped(queries)) ** 2) for m in (known, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_a_fit_for_gaps_does_not_depend_on_threads(fitted):
    queries, one, three, _ = fitted
    assert np.array_equal(one.predict(queries), three.predict(queries))


def test_a_fit_for_gaps_is_saved_with_its_direction(fitted, tmp_path):
    queries, known, _, _ = fitted
    known.save(tmp_path / "map.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "map.lsgp")
    assert np.array_equal(loaded.predict(queries), known.predict(queries))


def starts_of(lengthscale, given=frozenset()):
    """Where models of gaps of width .5 begin, from one with this lengthscale.

    In the scale of the fit without them, the gaps are wider.
    """
    space = SimpleNamespace(gap_width=0.5, transform=None, imitation=None)
    model = LocalModel(kernel="matern12", localizer="smooth", lengthscale=np.full(2, lengthscale))
    problem = SimpleNamespace(
        starts=[Start(SimpleNamespace(gap_width=0.9), model, 9)],
        parameters=SimpleNamespace(given=given),
        specification=SimpleNamespace(admits_coarse=True, n_neighbors=None),
        rows=SimpleNamespace(X=np.zeros((1000, 2))),
        y=np.zeros((1000, 1)),
    )
    return problem, Contender(space, SimpleNamespace(model=model)), Start(space, model, 9)


@pytest.mark.parametrize("lengthscale", [0.01, 0.2, 3.0])
def test_some_models_vary_across_gaps_and_some_within_whatever_was_found_first(
    lengthscale, monkeypatch
):
    monkeypatch.setattr("lsgp.tuning.stages.gaps._bare", lambda space: space)
    across, within = (make(*starts_of(lengthscale)) for make in (_across_gaps, _within_gaps))
    assert len(across) == 1
    assert all((start.model.lengthscale > 0.5 - 1e-9).all() for start in across)
    assert all((start.model.lengthscale < SHORT_IN_GAPS * 0.5 + 1e-9).all() for start in within)
    steepness = [s.model.signal_variance / s.model.lengthscale[0] for s in (*across, *within)]
    assert np.ptp(steepness) < 1e-9 * steepness[0]
    assert _across_gaps(*starts_of(lengthscale, frozenset({"lengthscale"}))) == []


def test_each_model_is_tuned_on_other_rows_of_all_gaps():
    number = np.zeros(200, dtype=np.int32)
    regions = Regions(tuple(Layer(number, np.arange(n, dtype=np.int32) + 5) for n in (120, 40, 2)))
    parts = [_thinned(regions, 41, k) for k in range(8)]
    for k, layer in enumerate(regions.layers[:2]):
        targets = [part.layers[k].targets for part in parts]
        assert np.array_equal(np.sort(np.concatenate(targets[:4])), layer.targets)
        assert np.array_equal(targets[0], targets[4])
    assert all(len(part.layers[2].targets) == 1 for part in parts)


def weigh_in_gaps(errors, n_models=8, losses=(0.0, 0.05, 0.5, 0.3)):
    """Weights of three models within gaps and one across, which are wrong by so much."""
    observed = np.zeros((50, 1))
    contenders = [
        Contender(
            SimpleNamespace(gap_width=0.0 if k < 3 else 0.5),
            SimpleNamespace(
                loss=loss,
                predicted=PredictiveDistribution(observed + error, 1.0 + observed, np.inf),
            ),
        )
        for k, (loss, error) in enumerate(zip(losses, errors, strict=True))
    ]
    problem = SimpleNamespace(n_models=n_models, objective=OBJECTIVES["log_density"])
    crps = OBJECTIVES["crps"]
    return _in_gaps(problem, contenders, crps, lambda one: crps.criterion(one, observed))


def test_what_varies_across_gaps_has_its_share_unless_it_is_far_off():
    rest = (1.0 - SHARE_ACROSS_GAPS) / 2.0
    # Though it is not as likely as those within, which are promising or have no weight.
    alike = weigh_in_gaps([1.0, 1.0, 1.0, -1.0])
    np.testing.assert_allclose(alike, [rest, rest, 0.0, SHARE_ACROSS_GAPS])
    np.testing.assert_allclose(weigh_in_gaps([1.0, 1.0, 1.0, 9.0]), [0.5, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("n_models", [1, 2, 3, 5])
def test_no_more_models_have_weight_in_gaps_than_are_wanted(n_models):
    weights = weigh_in_gaps([1.0, 1.0, 1.0, -1.0], n_models, (0.0, 0.05, 0.06, 0.3))
    assert (weights > 0).sum() == min(n_models, 4)
    assert weights.sum() == pytest.approx(1.0)
