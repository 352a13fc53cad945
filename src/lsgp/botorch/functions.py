# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy whose derivatives are known, for torch's autograd.

So every formula has one place: a kernel or localizer that is added to the method is known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lsgp.backends.contract import Resources
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.gradients import predict_with_gradient
from lsgp.ensemble.predict import predict_distribution

#: A function that returns values and their derivatives.
Formula = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]


def as_tensor(values: NDArray[Any]) -> Tensor:
    """Numbers in double precision, which algebra here is in."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))


class _Elementwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Formula) -> Tensor:
        value, derivative = function(x.detach().numpy())
        ctx.save_for_backward(as_tensor(derivative))
        return as_tensor(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (derivative,) = ctx.saved_tensors
        return gradient * derivative, None


def elementwise(function: Formula, x: Tensor) -> Tensor:
    """A function of each number of x."""
    result: Tensor = _Elementwise.apply(x, function)
    return result


class _Inputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, fitted: FittedModel) -> Tensor:
        ctx.fitted, ctx.given = fitted, X.detach().numpy()
        return as_tensor(fitted.inputs_of(ctx.given))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return as_tensor(ctx.fitted.transform.pull_back(ctx.given, gradient.numpy())), None


def inputs_of(fitted: FittedModel, X: Tensor) -> Tensor:
    """Queries (q, d) in the model's own inputs."""
    result: Tensor = _Inputs.apply(X, fitted)
    return result


class _MeanAndStd(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, X: Tensor, ensemble: Ensemble, kind: str, resources: Resources
    ) -> tuple[Tensor, Tensor]:
        given = X.detach().numpy()
        if not ctx.needs_input_grad[0]:
            predicted = predict_distribution(ensemble, given, kind, resources)
            mean, std = ensemble.in_columns(predicted.mean), ensemble.in_columns(predicted.std)
            return as_tensor(mean), as_tensor(std)
        found = predict_with_gradient(ensemble, given, kind, resources)
        ctx.save_for_backward(as_tensor(found.by_mean), as_tensor(found.by_std))
        return as_tensor(found.mean), as_tensor(found.std)

    @staticmethod
    def backward(ctx: Any, by_mean: Tensor, by_std: Tensor) -> tuple[Tensor, None, None, None]:
        mean, std = ctx.saved_tensors  # (q, t, d)
        gradient = (by_mean[:, :, None] * mean + by_std[:, :, None] * std).sum(dim=1)
        return gradient, None, None, None


def mean_and_std(
    ensemble: Ensemble, X: Tensor, kind: str, resources: Resources
) -> tuple[Tensor, Tensor]:
    """What `predict` says of queries (q, d), (q, t) each."""
    mean, std = _MeanAndStd.apply(X, ensemble, kind, resources)
    return mean, std
