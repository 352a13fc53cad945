# SPDX-License-Identifier: BSD-3-Clause
"""A fitted regressor as a model of BoTorch."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator import to_linear_operator
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lsgp.botorch.correlation import correlations
from lsgp.botorch.functions import as_tensor, mean_and_std
from lsgp.ensemble.view import training_rows
from lsgp.estimators.regressor import LSGPRegressor


class LSGPModel(Model):
    """What BoTorch's acquisition functions ask of a fitted `LSGPRegressor`.

    The posterior is normal, with the means and standard deviations that `LSGPRegressor.predict`
    gives, jointly over q points with the covariance of ``predict(X, return_cov=True)``; targets
    are independent of each other. It is differentiable in X, at fixed neighborhoods. Everything
    is computed in double precision on the CPU, and returned as X is.

    Parameters
    ----------
    estimator : LSGPRegressor
        Fitted to numbers. It is neither copied nor changed.
    outputs : list of int, default=None
        The targets that are outputs of the model; None: all of them.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.botorch import LSGPModel
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> estimator = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> model = LSGPModel(estimator)
    >>> posterior = model.posterior(torch.tensor([[[0.25], [0.5]]], dtype=torch.float64))
    >>> bool(np.allclose(posterior.mean[0, :, 0], estimator.predict([[0.25], [0.5]])))
    True
    """

    def __init__(self, estimator: LSGPRegressor, outputs: list[int] | None = None) -> None:
        check_is_fitted(estimator)
        if not isinstance(estimator, LSGPRegressor):
            raise TypeError(
                f"LSGPModel takes a fitted LSGPRegressor, not a {type(estimator).__name__}."
            )
        if estimator.ensemble_.encoder is not None:
            raise ValueError(
                "The estimator was fitted to a table with more than numbers, which torch's tensors "
                "cannot hold. Fit it to numbers."
            )
        super().__init__()
        self.estimator = estimator
        n = estimator.ensemble_.n_targets
        self.outputs = _checked_outputs(range(n) if outputs is None else outputs, n)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size([])

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The rows that it was fitted to, (n, d), around the best of which searches may start."""
        return (as_tensor(training_rows(self.estimator.ensemble_).X),)

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """Joint distribution of the function, or of observations, at each q points.

        Parameters
        ----------
        X : tensor of shape (..., q, d)
        output_indices : list of int, default=None
            Of the model's outputs.
        observation_noise : bool or tensor
            Whether observations are meant: independent noise is added as the model has it, or, from
            a tensor that broadcasts to (..., q, m), with these variances.
        posterior_transform : PosteriorTransform, default=None

        Returns
        -------
        GPyTorchPosterior
            Over (..., q, m).
        """
        outputs = self.outputs
        if output_indices is not None:
            outputs = [outputs[j] for j in _checked_outputs(output_indices, self.num_outputs)]
        ensemble = self.estimator._ready()
        d = ensemble.n_columns
        if X.dim() < 2 or X.shape[-1] != d:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but the model was fitted to {d} inputs. Give a "
                f"tensor of shape (..., q, {d})."
            )
        resources = self.estimator._resources()
        joint = X.reshape(-1, *X.shape[-2:]).to("cpu", torch.float64)
        b, q, _ = joint.shape
        points = joint.reshape(-1, d)
        mean, std = mean_and_std(ensemble, points, "latent", resources)
        infinite = torch.isinf(std).any(dim=-1)
        if infinite.any():
            raise ValueError(
                f"{int(infinite.sum())} of {b * q} predictions have 2 degrees of freedom or fewer, "
                "and no variance. Fit with Hyperparameters(scale='global'), or with more neighbors."
            )
        mean, std = (part.reshape(b, q, -1)[..., outputs] for part in (mean, std))
        # At a single point a correlation is 1, and needs no algebra.
        R = correlations(ensemble, joint)[..., outputs] if q > 1 else std.new_ones(b, 1, 1, 1)
        covariance = R * std[:, :, None, :] * std[:, None, :, :]
        noise = torch.zeros_like(std)
        if isinstance(observation_noise, Tensor):
            given = observation_noise.to("cpu", torch.float64)
            noise = given.expand(*X.shape[:-1], len(outputs)).reshape(b, q, -1)
        elif observation_noise:
            observed = mean_and_std(ensemble, points, "observation", resources)[1]
            observed = observed.reshape(b, q, -1)[..., outputs]
            noise = (observed**2 - std**2).clamp(min=0.0)
        covariance = covariance + torch.diag_embed(noise.transpose(-1, -2)).movedim(1, -1)
        shape, normals = X.shape[:-2], []
        for j in range(len(outputs)):
            # Lazily factored, with jitter where points all but coincide.
            lazy = to_linear_operator(covariance[..., j].reshape(*shape, q, q).to(X))
            normals.append(MultivariateNormal(mean[..., j].reshape(*shape, q).to(X), lazy))
        joined = normals[0]
        if len(normals) > 1:
            joined = MultitaskMultivariateNormal.from_independent_mvns(normals)
        posterior = GPyTorchPosterior(joined)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> LSGPModel:
        """The model with more rows, and with all that was learnt as it is.

        Parameters
        ----------
        X : tensor of shape (k, d)
        Y : tensor of shape (k, m)
        **kwargs
            ``noise``, a tensor of shape (k,) or (k, m): noise variances of the observations, if
            and only if `fit` was given some.
        """
        n = self.estimator.ensemble_.n_targets
        if self.outputs != list(range(n)):
            raise ValueError(
                f"The model has the outputs {self.outputs} of {n} targets, and rows need all of "
                "them. Condition the whole model, and take its outputs with subset_output."
            )
        if X.shape[:-2].numel() != 1 or Y.shape[:-2].numel() != 1:
            raise ValueError(
                f"X of shape {tuple(X.shape)} and Y of shape {tuple(Y.shape)} are several sets of "
                "observations, and a model has one. Condition it on each of them."
            )

        def numbers(values: Tensor) -> NDArray[np.float64]:
            return values.detach().cpu().double().reshape(X.shape[-2], -1).numpy()

        rows, targets, noise = numbers(X), numbers(Y), kwargs.get("noise")
        if noise is not None:
            noise = numbers(noise)
            noise = noise[:, 0] if noise.shape[1] == 1 else noise
        if not self.estimator.ensemble_.target_shape:
            targets = targets[:, 0]
        # What partial_fit changes it replaces, so that the estimator of this model stays as it is.
        changed = copy(self.estimator).partial_fit(rows, targets, noise_variance=noise)
        return LSGPModel(changed)

    def subset_output(self, idcs: list[int]) -> LSGPModel:
        """The model of some of its outputs."""
        return LSGPModel(self.estimator, [self.outputs[j] for j in idcs])


def _checked_outputs(given: Iterable[int], n: int) -> list[int]:
    outputs = [int(j) for j in given]
    if not outputs or any(not -n <= j < n for j in outputs):
        raise ValueError(
            f"The outputs {outputs} are not those of a model that has {n}. Give numbers from 0 to "
            f"{n - 1}."
        )
    return [j % n for j in outputs]
