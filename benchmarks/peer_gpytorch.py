# SPDX-License-Identifier: BSD-3-Clause
"""GPyTorch: an exact GP, and a sparse variational one; on a GPU where there is one."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from linear_operator.utils.errors import NotPSDError
from peers import Array, Predict, Task, standardized
from scipy.optimize import minimize
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lsgp.method.distribution import PredictiveDistribution

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
#: With more rows, the exact GP's first iterations are done on this many of them.
MOST_STARTING_ROWS = 1000
N_ITERATIONS, N_FULL_ITERATIONS = 100, 8
#: The loss where there is no Cholesky factor: line searches turn back from it.
FAILED = 1e6
N_INDUCING, BATCH_SIZE, N_EPOCHS, FEWEST_STEPS = 512, 1024, 30, 500


def _kernel(nu: float, n_inputs: int) -> Kernel:
    return ScaleKernel(MaternKernel(nu=nu, ard_num_dims=n_inputs))


class _ExactGP(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, nu: float) -> None:
        super().__init__(X, y, GaussianLikelihood())
        self.mean, self.kernel = gpytorch.means.ConstantMean(), _kernel(nu, X.shape[1])

    def forward(self, X: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(X), self.kernel(X))

    def climb(self, X: torch.Tensor, y: torch.Tensor, n_iterations: int) -> float:
        """L-BFGS on the marginal likelihood of these rows; the value that it reached."""
        self.set_train_data(X, y, strict=False)
        self.train()
        objective = ExactMarginalLogLikelihood(self.likelihood, self)
        parameters = list(self.parameters())

        def loss(values: Array) -> tuple[float, Array]:
            vector_to_parameters(torch.from_numpy(values).to(DEVICE), parameters)
            self.zero_grad()
            try:
                value = -objective(self(X), y)
            except NotPSDError:
                return FAILED, np.zeros_like(values)
            value.backward()
            return value.item(), torch.cat([p.grad.ravel() for p in parameters]).cpu().numpy()

        start = parameters_to_vector(parameters).detach().cpu().numpy()
        options = {"maxiter": n_iterations}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        vector_to_parameters(torch.from_numpy(found.x).to(DEVICE), parameters)
        return -float(found.fun)


@standardized
def fit_exact(task: Task) -> Predict:
    """Exact GP by Cholesky factors, ARD Matérn 3/2 or 5/2 by marginal likelihood (L-BFGS).

    Beyond 1,000 rows the smoothness and the first iterations take a random 1,000 of them, and
    a few last iterations take all.
    """
    torch.set_num_threads(1)
    X, y = (torch.from_numpy(a).to(DEVICE) for a in (task.X, task.y))
    rows = np.random.default_rng(task.seed).permutation(len(y))[:MOST_STARTING_ROWS]
    # No conjugate gradients: Cholesky at any size.
    with gpytorch.settings.fast_computations(False, False, False):
        models = [_ExactGP(X[rows], y[rows], nu).double().to(DEVICE) for nu in (1.5, 2.5)]
        reached = [model.climb(X[rows], y[rows], N_ITERATIONS) for model in models]
        model = models[int(np.argmax(reached))]
        if len(y) > MOST_STARTING_ROWS:
            model.climb(X, y, N_FULL_ITERATIONS)
    return _predictor(model, model.likelihood, torch.float64)


class _SparseGP(gpytorch.models.ApproximateGP):
    def __init__(self, inducing: torch.Tensor, nu: float) -> None:
        posterior = CholeskyVariationalDistribution(len(inducing))
        super().__init__(VariationalStrategy(self, inducing, posterior))
        self.mean, self.kernel = gpytorch.means.ConstantMean(), _kernel(nu, inducing.shape[1])

    def forward(self, X: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(X), self.kernel(X))


@standardized
def fit_svgp(task: Task) -> Predict:
    """SVGP, 512 inducing points, ARD Matérn 3/2; Adam on minibatches of 1,024 rows, 30 epochs
    or 500 steps, whichever is more.
    """
    torch.set_num_threads(1)
    torch.manual_seed(task.seed)
    rng = torch.Generator().manual_seed(task.seed)
    X, y = (torch.from_numpy(a).float().to(DEVICE) for a in (task.X, task.y))
    n = len(y)
    inducing = X[torch.randperm(n, generator=rng)[:N_INDUCING]].clone()
    model, likelihood = _SparseGP(inducing, 1.5).to(DEVICE), GaussianLikelihood().to(DEVICE)
    objective = VariationalELBO(likelihood, model, num_data=n)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    n_batches = math.ceil(n / BATCH_SIZE)
    n_epochs = max(N_EPOCHS, math.ceil(FEWEST_STEPS / n_batches))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_epochs * n_batches)
    model.train()
    for _ in range(n_epochs):
        for rows in torch.randperm(n, generator=rng).to(DEVICE).split(BATCH_SIZE):
            optimizer.zero_grad()
            (-objective(model(X[rows]), y[rows])).backward()
            optimizer.step()
            schedule.step()
    return _predictor(model, likelihood, torch.float32)


def _predictor(
    model: gpytorch.models.GP, likelihood: GaussianLikelihood, dtype: torch.dtype
) -> Predict:
    model.eval()
    likelihood.eval()

    def predict(X: Array) -> PredictiveDistribution:
        means, stds = [], []
        with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
            for block in torch.from_numpy(X).to(DEVICE, dtype).split(1000):
                found = likelihood(model(block))
                means.append(found.mean)
                stds.append(found.stddev)
        return PredictiveDistribution(*(torch.cat(part).cpu().numpy() for part in (means, stds)))

    return predict
