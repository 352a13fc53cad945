# SPDX-License-Identifier: BSD-3-Clause
"""Labels are left out with the rest of their group, wherever a model of them is judged."""

import numpy as np

from lsgp import LSGPClassifier
from lsgp.tuning.hold_out import split_by_blocks


def random_labels(n_groups, group_size, seed):
    """Near-copies of a few rows, whose labels have nothing to do with the inputs."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_groups) % 2)
    groups = np.repeat(np.arange(n_groups), group_size)
    X = rng.normal(size=(n_groups, 3))[groups] + 1e-3 * rng.normal(size=(len(groups), 3))
    return X, labels[groups], groups


def fitted(n_groups, group_size, seed):
    X, y, groups = random_labels(n_groups, group_size, seed)
    return LSGPClassifier(random_state=0, effort="fast").fit(X, y, groups=groups)


def test_random_labels_of_groups_are_not_predicted():
    for group_size in (5, 10):
        left_out = [fitted(60, group_size, seed).loo().assessment for seed in range(3)]
        assert np.mean([each.error for each in left_out]) > 0.35
        assert np.mean([each.log_loss for each in left_out]) > 0.6


def test_the_link_does_not_believe_copies():
    """One that was fitted to near-copies would be sure of what it cannot know."""
    model = fitted(60, 10, 0)
    queries = np.random.default_rng(1).normal(size=(500, 3))
    assert np.abs(model.predict_proba(queries) - 0.5).mean() < 0.25


def test_no_group_is_tuned_on_and_judged():
    order = np.random.default_rng(0).permutation(60).astype(np.int32)
    groups = np.repeat(np.arange(12), 5).astype(np.int32)
    groups[:10] = -1  # alone
    judged, tuned = split_by_blocks(order, 30, groups)
    assert len(judged) == 30
    assert len(judged) + len(tuned) > 54
    assert not set(judged) & set(tuned)
    assert not set(groups[judged]) & set(groups[tuned]) - {-1}
    for block in (None, np.full(60, -1, dtype=np.int32)):
        parts = split_by_blocks(order, 8, block)
        np.testing.assert_array_equal(np.concatenate(parts), order)
    # One group is tuned on all the same.
    judged, tuned = split_by_blocks(order, 3, np.zeros(60, dtype=np.int32))
    assert (len(judged), len(tuned)) == (3, 60)


def test_classes_of_groups_that_can_be_predicted_are():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 3))[groups] + 1e-3 * rng.normal(size=(300, 3))
    model = LSGPClassifier(random_state=0, effort="fast").fit(X, X[:, 0] > 0.0, groups=groups)
    assert model.loo().assessment.error < 0.15
