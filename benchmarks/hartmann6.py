# SPDX-License-Identifier: BSD-3-Clause
"""Bayesian optimization of Hartmann-6 from 2,000 points, with qLogEI: the page on optimization.

    python benchmarks/hartmann6.py

Each seed starts from its own 2,000 points of a Sobol sequence, tunes once, and evaluates 4 points
in each round; "sobol" goes on with the sequence instead. The results are appended, seed by seed;
the picture is drawn from the file.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.optim import optimize_acqf
from botorch.test_functions import Hartmann
from runner import FOLDER, ResultsFile, run_jobs
from torch import Tensor

from lsgp import LSGPRegressor
from lsgp.botorch import LSGPModel

N_START, N_ROUNDS, Q = 2000, 10, 4
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "hartmann6.png"

FUNCTION = Hartmann(dim=6, negate=True)
BOUNDS = torch.tensor([[0.0] * 6, [1.0] * 6], dtype=torch.float64)


def optimize(X: Tensor, seed: int) -> dict[str, Any]:
    """The loop: the best value after each round, and CPU seconds of tuning and of all rounds."""
    torch.manual_seed(seed)
    y = FUNCTION(X)
    started = time.process_time()
    estimator = LSGPRegressor(max_time=10, random_state=seed)
    model = LSGPModel(estimator.fit(X.numpy(), y.numpy()))
    tuned, best = time.process_time(), [y.max().item()]
    for _ in range(N_ROUNDS):
        acquisition = qLogExpectedImprovement(model, best_f=max(best))
        new, _ = optimize_acqf(
            acquisition, BOUNDS, q=Q, num_restarts=4, raw_samples=64, options={"maxiter": 40}
        )
        values = FUNCTION(new)
        best.append(max(best[-1], values.max().item()))
        model = model.condition_on_observations(new, values[:, None])
    seconds = {"tuning_cpu_s": tuned - started, "rounds_cpu_s": time.process_time() - tuned}
    return {"best": best, **seconds}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    sobol = torch.quasirandom.SobolEngine(6, scramble=True, seed=job["seed"])
    X = sobol.draw(N_START + N_ROUNDS * Q, dtype=torch.float64)
    if job["method"] == "lsgp":
        return optimize(X[:N_START], job["seed"])
    y = FUNCTION(X).numpy()
    return {"best": [y[: N_START + Q * r].max().item() for r in range(N_ROUNDS + 1)]}


def draw(results: list[dict[str, Any]]) -> None:
    """Regret in each round, on a logarithmic scale."""
    figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    evaluations = Q * np.arange(N_ROUNDS + 1)
    for method, color, label in (
        ("sobol", "0.6", "the sequence goes on"),
        ("lsgp", "C0", "qLogEI on LSGPModel"),
    ):
        for i, result in enumerate(r for r in results if r["method"] == method):
            regret = FUNCTION.optimal_value - np.array(result["best"])
            own = label if i == 0 else None
            axes.step(evaluations, np.maximum(regret, 1e-6), where="post", color=color, label=own)
    axes.set(
        yscale="log",
        xlabel=f"evaluations after the first {N_START:,}",
        ylabel="below the maximum",
        title="Hartmann-6",
    )
    axes.legend()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=FOLDER / "hartmann6.jsonl")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    file, methods = ResultsFile(given.output), ("lsgp", "sobol")
    jobs = [{"seed": seed, "method": method} for seed in given.seeds for method in methods]
    run_jobs(jobs, file, measure)
    draw([result for result in file.results if "best" in result])


if __name__ == "__main__":
    main()
