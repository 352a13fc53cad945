# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's callbacks hear of a fit, and it leaves no trace of them."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from small_data import make_data
from tuned import assert_same_predictions, regressor

from lsgp.inputs.callbacks import HAS_CALLBACKS, N_PARTS

pytestmark = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn 1.9 has callbacks")


class Recorder:
    """Follows the protocol of a callback."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append("teardown")


class Inherited(Recorder):
    """One that a search hands to what it fits."""

    max_propagation_depth = 3


def test_every_part_of_a_fit_is_told_once():
    recorder, (X, y) = Recorder(), make_data(120)
    model = regressor().set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    parts = [event[2] for event in recorder.events[2:-2] if event[0] == "end"]
    assert parts == list(range(N_PARTS))
    assert_same_predictions(model, regressor().fit(X, y), X)
    assert not [name for name in vars(model) if name.startswith("_callback")]
    assert_same_predictions(pickle.loads(pickle.dumps(model.set_callbacks())), model, X)


def test_a_fit_that_fails_or_tunes_nothing_ends_for_its_callbacks():
    recorder, (X, y) = Recorder(), make_data(60)
    model = regressor().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.full(60, np.nan))
    assert recorder.events == ["setup", ("begin", "fit", 0), "teardown"]
    recorder.events.clear()
    model.set_params(objective=None).fit(X, y)
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]


def test_a_search_hands_its_callbacks_on():
    recorder, (X, y) = Inherited(), make_data(60)
    search = GridSearchCV(
        regressor(objective=None), {"hyperparameters__noise_variance": [0.1, 0.2]}, cv=2
    )
    search.set_callbacks(recorder).fit(X, y)
    assert sum(event[0] == "end" and event[1] == "tuning" for event in recorder.events) >= N_PARTS
    assert recorder.events[-1] == "teardown"
    assert hasattr(search.best_estimator_, "ensemble_")
