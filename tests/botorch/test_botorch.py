# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators as models of BoTorch: posteriors are those of `predict`, with gradients."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RationalQuadratic
from small_data import make_data
from untuned import combined_model

from lsgp import Hyperparameters, LSGPClassifier, LSGPRegressor
from lsgp.method.kernels import KERNELS, SumKernel
from lsgp.method.localizers import LOCALIZERS
from lsgp.solvers.choose import choose_solver

NEEDS = "needs the extra botorch: run make test-botorch"
torch = pytest.importorskip("torch", reason=NEEDS)
logei, objective, optim, normal = (
    pytest.importorskip(f"botorch.{name}", reason=NEEDS)
    for name in ("acquisition.logei", "acquisition.objective", "optim", "sampling.normal")
)
LSGPModel = pytest.importorskip("lsgp.botorch").LSGPModel

# Small tensors, which threads only slow down.
torch.set_num_threads(1)
# torch warns of its own parts, and of models that are not of unit scale.
pytestmark = pytest.mark.filterwarnings("ignore")


X = np.exp(0.5 * np.random.default_rng(0).normal(size=(300, 2)))
Y = 100.0 + 20.0 * (np.sin(2.0 * X[:, 0]) + X[:, 1]) + np.random.default_rng(1).normal(size=300)
TWO = np.column_stack([Y, np.cos(X[:, 0])])
QUERIES = torch.tensor(X[:12].reshape(3, 4, 2) + 0.02)


def fitted(targets=Y, **settings):
    settings = {
        "n_neighbors": 30,
        # Inputs are taken as they are where a lengthscale is given.
        "hyperparameters__lengthscale": None if "input_transform" in settings else 0.5,
        "hyperparameters__noise_variance": 4.0,
        **settings,
    }
    kernel = settings.pop("composite", None)
    estimator = LSGPRegressor().set_params(objective=None, **settings).fit(X, targets)
    if kernel is not None:  # which is tuned, and cannot be given
        (own,) = estimator.ensemble_.models
        problem = own.problem._replace(model=own.model.replace(kernel=kernel))
        solver = choose_solver(problem, own.index, own.n_neighbors, own.solver.backend)
        estimator.ensemble_ = replace(estimator.ensemble_, models=(own.with_solver(solver),))
    return estimator


SETTINGS = {
    **{
        f"{kernel}-{localizer}": {"kernel": kernel, "localizer": localizer}
        for kernel, localizer in [
            *((kernel, "smooth") for kernel in KERNELS),
            *(("matern32", localizer) for localizer in LOCALIZERS if localizer != "smooth"),
        ]
    },
    "fixed": {"localizer__bandwidth": 0.8, "localizer": "epanechnikov"},
    "paper": {"localizer__normalized": True, "localizer": "gaussian"},
    "no trend": {"trend": "none"},
    "large trend": {"trend": (1e6, 1e3)},
    "ordinary": {"trend": (np.inf, 0.0)},
    "universal": {"trend": (np.inf, np.inf), "hyperparameters__scale": "global"},
    "exact": {"localizer": "rectangular", "n_neighbors": 300},
    "exact sum": {
        "localizer": "rectangular",
        "n_neighbors": 300,
        "composite": SumKernel(("matern52", "matern12"), 0.5, (0.3, 0.2)),
    },
    "exact universal": {
        "localizer": "rectangular",
        "n_neighbors": 300,
        "trend": (np.inf, np.inf),
    },
    "yeo-johnson": {"input_transform": "yeo-johnson"},
    "half-rank": {"input_transform": "half-rank"},
}
each_settings = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


@each_settings
@pytest.mark.parametrize("observation_noise", [False, True])
def test_posterior_is_what_predict_says(settings, observation_noise):
    estimator = fitted(**settings)
    posterior = LSGPModel(estimator).posterior(QUERIES, observation_noise=observation_noise)
    kind = "observation" if observation_noise else "latent"
    assert posterior.mean.shape == posterior.variance.shape == (3, 4, 1)
    for i, queries in enumerate(QUERIES.numpy()):
        mean, std = estimator.predict(queries, return_std=True, kind=kind)
        np.testing.assert_allclose(posterior.mean[i, :, 0], mean, rtol=1e-8)
        np.testing.assert_allclose(posterior.variance[i, :, 0], std**2, rtol=1e-8)
        _, covariance = estimator.predict(queries, return_cov=True, kind=kind)
        own = posterior.mvn.covariance_matrix[i]
        np.testing.assert_allclose(own, covariance, rtol=1e-8, atol=1e-8 * np.max(std**2))


@each_settings
@pytest.mark.parametrize("q", [1, 3])
def test_gradients_are_those_of_finite_differences(settings, q):
    model = LSGPModel(fitted(**settings))
    points = QUERIES[:2, :q].clone().requires_grad_()
    weight = torch.tensor(np.random.default_rng(2).normal(size=(2, q, q)))

    def value(at):
        posterior = model.posterior(at, observation_noise=True)
        return (weight * posterior.mvn.covariance_matrix).sum() + posterior.mean.sum()

    (gradient,) = torch.autograd.grad(value(points), points)
    step = 1e-6
    for place in itertools.product(*map(range, points.shape)):
        move = torch.zeros_like(points)
        move[place] = step
        with torch.no_grad():
            difference = (value(points + move) - value(points - move)) / (2.0 * step)
        assert gradient[place] == pytest.approx(float(difference), rel=1e-4, abs=1e-3)


def test_several_models_and_targets_are_combined_as_in_predict():
    estimator = combined_model(X, TWO)
    model = LSGPModel(estimator)
    assert model.num_outputs == 2
    assert model.batch_shape == torch.Size([])
    posterior = model.posterior(QUERIES)
    assert posterior.mean.shape == (3, 4, 2)
    for i, queries in enumerate(QUERIES.numpy()):
        mean, covariance = estimator.predict(queries, return_cov=True, kind="latent")
        np.testing.assert_allclose(posterior.mean[i], mean, rtol=1e-8)
        for j in range(2):
            own = model.posterior(QUERIES, output_indices=[j]).mvn.covariance_matrix[i]
            np.testing.assert_allclose(own, covariance[:, :, j], rtol=1e-8, atol=1e-10)
            alone = model.subset_output([j]).posterior(QUERIES)
            assert torch.equal(alone.mvn.covariance_matrix[i], own)
            np.testing.assert_allclose(posterior.variance[i, :, j], np.diag(own), rtol=1e-8)


def test_parts_of_a_batch_do_not_depend_on_the_others(monkeypatch):
    model = LSGPModel(fitted())
    together = model.posterior(QUERIES).mvn.covariance_matrix
    alone = torch.stack([model.posterior(each).mvn.covariance_matrix for each in QUERIES])
    assert torch.allclose(together, alone, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr("lsgp.botorch.correlation.LARGEST_TENSOR", 1)
    in_parts = model.posterior(QUERIES).mvn.covariance_matrix
    assert torch.allclose(in_parts, together, rtol=1e-10, atol=1e-10)


def test_batches_of_any_shape_dtype_and_transform_are_taken():
    model = LSGPModel(fitted(TWO))
    nested = QUERIES.reshape(3, 1, 4, 2)
    assert model.posterior(nested).mean.shape == (3, 1, 4, 2)
    assert model.posterior(nested[0, 0]).mean.shape == (4, 2)
    assert model.posterior(QUERIES.float()).mean.dtype == torch.float32
    weighted = objective.ScalarizedPosteriorTransform(
        torch.tensor([1.0, -2.0], dtype=torch.float64)
    )
    scalar = model.posterior(QUERIES, posterior_transform=weighted)
    plain = model.posterior(QUERIES)
    expected = plain.mean[..., :1] - 2.0 * plain.mean[..., 1:]
    assert torch.allclose(scalar.mean, expected)
    assert torch.allclose(scalar.variance, plain.variance[..., :1] + 4.0 * plain.variance[..., 1:])


def test_given_observation_noise_is_added_to_the_variance():
    model = LSGPModel(fitted())
    latent = model.posterior(QUERIES).mvn.covariance_matrix
    given = model.posterior(QUERIES, observation_noise=torch.full((1, 1, 1), 2.5))
    assert torch.allclose(given.mvn.covariance_matrix, latent + 2.5 * torch.eye(4))


def test_samples_are_those_of_the_joint_distribution():
    posterior = LSGPModel(fitted()).posterior(QUERIES[0])
    sampler = normal.SobolQMCNormalSampler(torch.Size([4096]), seed=0)
    samples = sampler(posterior)[..., 0].numpy()
    wanted = posterior.mvn.covariance_matrix.numpy()
    np.testing.assert_allclose(np.cov(samples.T), wanted, atol=0.02 * wanted.max())


def test_conditioning_adds_rows_to_a_copy():
    estimator = fitted(hyperparameters__scale="global")
    model = LSGPModel(estimator)
    new, target = QUERIES[0, :1], torch.tensor([[500.0]], dtype=torch.float64)
    before = model.posterior(new)
    changed = model.condition_on_observations(new, target)
    after = changed.posterior(new)
    assert estimator.ensemble_.n_rows == 300
    assert changed.estimator.ensemble_.n_rows == 301
    assert torch.equal(model.posterior(new).mean, before.mean)
    assert after.mean.item() > before.mean.item() + 50.0
    assert after.variance.item() < before.variance.item()
    expected = fitted(hyperparameters__scale="global").partial_fit(new.numpy(), [500.0])
    assert after.mean.item() == expected.predict(new.numpy())[0]
    with pytest.raises(ValueError, match=r"^X of shape \(3, 4, 2\) .* are several sets of obs"):
        model.condition_on_observations(QUERIES, torch.zeros(3, 4, 1))
    both = LSGPModel(fitted(TWO))
    assert both.condition_on_observations(new, torch.ones(1, 2)).num_outputs == 2
    with pytest.raises(ValueError, match=r"^The model has the outputs \[1\] of 2 targets"):
        both.subset_output([1]).condition_on_observations(new, torch.ones(1, 1))


@pytest.mark.parametrize("q", [1, 2])
def test_an_acquisition_function_is_optimized_over_the_model(q):
    """Of a bowl, the improvement over its edge is where the bowl is deep."""
    points = make_data(400, 2)[0]
    values = -((points[:, 0] - 0.3) ** 2) - (points[:, 1] + 0.2) ** 2
    estimator = LSGPRegressor(
        objective=None, n_neighbors=40, hyperparameters=Hyperparameters(noise_variance=1e-4)
    )
    model = LSGPModel(estimator.fit(points, values))
    acquisition = logei.qLogExpectedImprovement(
        model,
        best_f=-0.05,
        sampler=normal.SobolQMCNormalSampler(torch.Size([64]), seed=0),
        objective=objective.LinearMCObjective(torch.ones(1, dtype=torch.float64)),
    )
    bounds = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    found, value = optim.optimize_acqf(acquisition, bounds, q=q, num_restarts=3, raw_samples=32)
    assert found.shape == (q, 2)
    assert torch.isfinite(value).all()
    best = np.min(np.linalg.norm(found.numpy() - [0.3, -0.2], axis=1))
    assert best < 0.15


def test_what_cannot_be_a_model_is_refused():
    with pytest.raises(TypeError, match=r"^LSGPModel takes a fitted LSGPRegressor, not a LSGPCl"):
        LSGPModel(LSGPClassifier(objective=None).fit(X, (Y.mean() < Y).astype(int)))
    table = {"size": X[:, 0], "color": np.where(X[:, 1] > 1.0, "red", "blue")}
    pandas = pytest.importorskip("pandas")
    encoded = LSGPRegressor(objective=None).fit(pandas.DataFrame(table), Y)
    with pytest.raises(ValueError, match=r"^The estimator was fitted to a table with more than"):
        LSGPModel(encoded)
    model = LSGPModel(fitted())
    message = "X has shape (3, 4, 1), but the model was fitted to 2 inputs."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        model.posterior(QUERIES[..., :1])
    by_object = LSGPModel(
        fitted(
            kernel=RationalQuadratic(),
            hyperparameters__lengthscale=None,
            hyperparameters__noise_variance=None,
        )
    )
    assert by_object.posterior(QUERIES[:, :1]).mean.shape == (3, 1, 1)
    with pytest.raises(ValueError, match=r"^The kernel .* has no formula of the distance"):
        by_object.posterior(QUERIES)
    with pytest.raises(ValueError, match=r"^The outputs \[1\] are not those of a model that has 1"):
        model.posterior(QUERIES, output_indices=[1])


def test_predictions_without_a_variance_are_refused():
    model = LSGPModel(
        fitted(
            hyperparameters__scale="local", hyperparameters__scale_dof=0.5, localizer__bandwidth=0.5
        )
    )
    with pytest.raises(ValueError, match=r"^1 of 1 predictions have 2 degrees of freedom or fewer"):
        model.posterior(torch.tensor([[50.0, 50.0]], dtype=torch.float64))
