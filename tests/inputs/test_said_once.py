# SPDX-License-Identifier: BSD-3-Clause
"""A setting is said once: its record makes signature, docstring, check, option and saved field."""

import inspect
import pickle
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from small_regression import QUERIES, X, Y, raises

from lsgp import (
    Effort,
    Hyperparameters,
    Localizer,
    LSGPClassifier,
    LSGPRegressor,
    Rotated,
    Sphere,
)
from lsgp.cli.options import given_settings
from lsgp.cli.parser import make_parser
from lsgp.inputs import estimator_settings
from lsgp.inputs.estimator_settings import ALL_OBJECTIVES, KERNEL_NAMES, SETTINGS, settings_of
from lsgp.inputs.setting import Setting, whole
from lsgp.inputs.setting_objects import EFFORTS, LOCALIZER_NAMES, METRICS
from lsgp.method.contract import LOCALIZER_METRICS, OBJECTIVES
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS
from lsgp.tuning.budget import BUDGETS

ROOT = Path(__file__).parents[2]
ESTIMATORS = (LSGPRegressor, LSGPClassifier)
PARTS = (Hyperparameters, Localizer, Sphere, Rotated, Effort)
OBJECTS = (
    Hyperparameters(lengthscale=[1.0, 2.0], noise_variance=0.1),
    Localizer("epanechnikov", bandwidth=0.5),
    Sphere("lon", "lat"),
    Rotated("x", "y", angle=30.0, ratio=0.5),
    Effort("fast", n_models=1),
)


@pytest.fixture
def depth(monkeypatch):
    """A setting that there is during one test."""
    record = Setting("depth", 3, whole(1), "How deep it goes. More is slower.", "--depth")
    monkeypatch.setattr(estimator_settings, "SETTINGS", (*SETTINGS, record))
    monkeypatch.setattr("lsgp.cli.options.SETTINGS", (*SETTINGS, record))
    kinds = []
    for kind in ESTIMATORS:
        # A class of this name gets its settings when it is made.
        kinds.append(type(kind.__name__, (kind,), {"__doc__": "A copy.\n\n[settings]\n"}))
    return kinds


def test_a_setting_that_is_added_in_one_place_is_everywhere(depth, tmp_path):
    for kind in depth:
        assert inspect.signature(kind).parameters["depth"].default == 3
        assert "depth : int, default=3\n    How deep it goes." in kind.__doc__
        model = kind(depth=5, objective=None)
        assert model.get_params()["depth"] == 5
        assert repr(clone(model)) == f"{kind.__name__}(depth=5, objective=None)"
        with raises(ValueError, "depth=0 must be a whole number of at least 1."):
            kind(depth=0).fit(X, Y > 0)
        model.fit(X, Y > 0).save(tmp_path / "model")
        assert kind.load(tmp_path / "model").depth == 5
    options = make_parser().parse_args(["fit", "t.csv", "-o", "m", "--target", "y", "--depth", "7"])
    assert given_settings(options)["depth"] == 7


@pytest.mark.parametrize("kind", [*ESTIMATORS, *PARTS])
def test_signature_docstring_and_parameters_agree(kind):
    settings = settings_of(kind.__name__) if kind in ESTIMATORS else kind.settings
    names = [setting.name for setting in settings]
    parameters = inspect.signature(kind).parameters
    assert list(parameters) == names
    assert len(names) <= 20
    for setting in settings:
        assert parameters[setting.name].default == setting.default
        assert f"\n{setting.name} : {setting.values.description}" in kind.__doc__
        assert setting.text.endswith(".")
    if kind in ESTIMATORS:
        assert sorted(kind().get_params(deep=False)) == sorted(names)
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())


def test_efforts_are_those_of_tuning():
    assert tuple(BUDGETS) == EFFORTS


def test_words_are_those_of_the_method():
    assert sorted(KERNEL_NAMES) == sorted(KERNELS)
    assert sorted(LOCALIZER_NAMES) == sorted(LOCALIZERS)
    assert METRICS == LOCALIZER_METRICS
    assert (*OBJECTIVES, "marginal_likelihood") == ALL_OBJECTIVES


def test_options_are_different():
    fields = [field for part in PARTS for field in part.settings]
    flags = [setting.flag for setting in (*SETTINGS, *fields) if setting.flag]
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_are_frozen_and_can_be_printed_compared_cloned_and_pickled(value):
    assert eval(repr(value)) == value
    assert clone(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    name = next(iter(value.get_params()))
    with pytest.raises(AttributeError, match=rf"^{type(value).__name__} is frozen: {name} cannot"):
        setattr(value, name, None)
    with pytest.raises(AttributeError, match="is frozen"):
        delattr(value, name)


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_are_saved(value, tmp_path):
    from lsgp.storage.values import decode, encode

    assert decode(encode(value, "setting")) == value


def test_fields_are_set_like_settings():
    model = LSGPRegressor().set_params(hyperparameters__lengthscale=0.5, localizer__decay=2.0)
    assert model.hyperparameters == Hyperparameters(lengthscale=0.5)
    assert model.localizer == Localizer("smooth", decay=2.0)
    before = model.localizer
    model.set_params(localizer="gaussian", localizer__bandwidth=0.1)
    assert (model.localizer, before.decay) == (Localizer("gaussian", bandwidth=0.1), 2.0)
    assert model.get_params()["localizer__bandwidth"] == 0.1
    model.set_params(hyperparameters=None, effort__n_models=1)
    assert (model.hyperparameters, model.effort) == (None, Effort(n_models=1))
    rotated = LSGPRegressor(coordinates=Rotated("x", "y")).set_params(coordinates__angle=3.0)
    assert rotated.coordinates == Rotated("x", "y", angle=3.0)


class Derived(LSGPRegressor):
    """An estimator of somebody's own."""


def test_derived_estimators_have_the_same_settings():
    model = Derived(objective=None, n_neighbors=0)
    with raises(ValueError, "n_neighbors=0 is neither 'auto' nor a whole number of at least 1."):
        model.fit(X, Y)
    model.set_params(n_neighbors=30, localizer__decay=1.0).fit(X, Y)
    assert clone(model).get_params() == model.get_params()


def test_fields_can_be_searched():
    grid = {"hyperparameters__lengthscale": [0.05, 2.0], "localizer__bandwidth": [0.4, 4.0]}
    search = GridSearchCV(LSGPRegressor(objective=None), grid, cv=3).fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) == 4
    assert search.best_estimator_.predict(QUERIES).shape == (len(QUERIES),)


def test_an_object_of_the_wrong_estimator_is_refused():
    with raises(
        ValueError,
        "localizer=Localizer(reach=2.0) has reach=, which LSGPClassifier does not know. Leave it "
        "out.",
    ):
        LSGPClassifier(localizer=Localizer(reach=2.0)).fit(X, Y > 0)


WRONG_NAMES = {
    "LSGPRegressor has no setting 'n_neighbours'. Did you mean 'n_neighbors'?": lambda: (
        LSGPRegressor(n_neighbours=9)
    ),
    "LSGPClassifier has no setting 'efort'. Did you mean 'effort'?": lambda: (
        LSGPClassifier().set_params(efort="fast")
    ),
    "Localizer has no setting 'bandwith'. Did you mean 'bandwidth'?": lambda: (
        LSGPRegressor().set_params(localizer__bandwith=1.0)
    ),
    "LSGPRegressor has no setting 'lengthscale'. Did you mean "
    "hyperparameters=Hyperparameters(lengthscale=...)?": lambda: LSGPRegressor(lengthscale=1.0),
    "Hyperparameters has no setting 'noise'. Did you mean 'noise_variance'?": lambda: (
        Hyperparameters(noise=1.0)
    ),
    "Effort has no setting 'zzz'. It has name, n_models, n_points, calibrate, boosting.": lambda: (
        Effort(zzz=1)
    ),
    "LSGPRegressor: too many positional arguments. Give settings once, as kernel=..., "
    "n_neighbors=..., trend=....": lambda: LSGPRegressor("rbf"),
    "Localizer: multiple values for argument 'name'. Give settings once, as name=..., "
    "bandwidth=..., decay=....": lambda: Localizer("smooth", name="smooth"),
}


@pytest.mark.parametrize("message", WRONG_NAMES)
def test_a_wrong_name_is_told_with_the_nearest_one(message):
    with raises((TypeError, ValueError), message):
        WRONG_NAMES[message]()


# -- how estimators are made -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_is_at_most_three_classes_of_ours(kind):
    own = [each for each in kind.__mro__ if each.__module__.startswith("lsgp.")]
    own = [each for each in own if each.__name__ != "CallbackSupportMixin"]  # of scikit-learn 1.9
    assert len(own) <= 3, own
    assert vars(kind()).keys() == kind().get_params(deep=False).keys()


def test_the_room_of_estimators_stays_small():
    files = sorted((ROOT / "src" / "lsgp" / "estimators").glob("*.py"))
    assert len(files) <= 6
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 1900
