# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp demo``: a full GP and an LSGP on the toy example of the paper, the Doppler function.

It prints a table, and draws the paper's Figure 3.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from lsgp import LSGPRegressor, PredictiveDistribution
from lsgp.cli.console import Voice, write_table
from lsgp.cli.errors import CommandError
from lsgp.compute.blas import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

FEWEST_POINTS = 20
N_VALIDATION, N_TEST = 200, 1000
NOISE = 0.1
LEVEL = 0.95
#: Training points that a prediction of the LSGP comes from.
N_NEIGHBORS = 16
#: Below this x the function has 17 of its 20 periods.
FAST_PART = 0.2
#: Okabe and Ito's colors, which the color-blind can tell apart.
GP_COLOR, LSGP_COLOR = "#D55E00", "#0072B2"


class Doppler(NamedTuple):
    """One draw of the data."""

    X: Array  # (n, 1)
    y: Array  # (n,)
    X_validation: Array
    y_validation: Array
    X_test: Array
    y_test: Array  # without noise


class Fit(NamedTuple):
    """What one model says at the test points."""

    mean: Array  # (N_TEST,)
    low: Array  # (N_TEST,) ends of the interval of an observation
    high: Array
    seconds: float
    n_neighbors: float  # training points that a prediction used, on average


class Comparison(NamedTuple):
    """Both models on the same data."""

    data: Doppler
    gp: Fit
    lsgp: Fit

    def errors(self, below: float = 1.0) -> tuple[float, float]:
        """Mean squared errors of the GP and of the LSGP where x is less than ``below``."""
        part = self.data.X_test[:, 0] < below
        squared = [(fit.mean - self.data.y_test)[part] ** 2 for fit in (self.gp, self.lsgp)]
        return float(np.mean(squared[0])), float(np.mean(squared[1]))


def make_doppler(n: int, noise: float, random: np.random.Generator) -> tuple[Array, Array]:
    """Noisy samples of the Doppler function, which oscillates faster the closer x is to 0.

    y = sqrt(x (1 - x)) sin(2.1 pi / (x + 0.05)) + noise, at n sorted x, uniform on [0, 1].
    """
    x = np.sort(random.uniform(size=n))
    y = np.sqrt(x * (1.0 - x)) * np.sin(2.1 * np.pi / (x + 0.05))
    return x[:, np.newaxis], y + noise * random.standard_normal(n)


def draw_data(n: int, seed: int) -> Doppler:
    """Rows to fit, to choose hyperparameters by (as the paper does) and to test on.

    The paper writes N(0, 0.1) for the noise, which by its notation for models would be a variance;
    but noise of that size (0.316) would exceed the function itself, whose standard deviation is
    about 0.29, so we read a standard deviation.
    """
    random = np.random.default_rng(seed)
    return Doppler(
        *make_doppler(n, NOISE, random),
        *make_doppler(N_VALIDATION, NOISE, random),
        *make_doppler(N_TEST, 0.0, random),
    )


def fit_gp(data: Doppler) -> Fit:
    """The full GP, its hyperparameters by L-BFGS on the marginal likelihood."""
    kernel = 1.0 * RBF(0.1) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        # A restart may end at a bound; the best of them is kept.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, data.y)
    mean, std = model.predict(data.X_test, return_std=True)
    seconds = time.perf_counter() - start
    low, high = PredictiveDistribution(mean, std).interval(LEVEL)
    return Fit(mean, low, high, seconds, float(len(data.X)))


def fit_lsgp(data: Doppler) -> Fit:
    """The LSGP, tuned as always, with a few neighbors for each prediction."""
    start = time.perf_counter()
    model = LSGPRegressor(n_neighbors=N_NEIGHBORS, random_state=0)
    mean = model.fit(data.X, data.y).predict(data.X_test)
    low, high = model.predict_interval(data.X_test, LEVEL)
    return Fit(mean, low, high, time.perf_counter() - start, float(N_NEIGHBORS))


def compare(
    sizes: Sequence[int], n_draws: int, seed: int, progress: Callable[[int], object]
) -> dict[int, list[Comparison]]:
    """Both models for every size, on several draws of the data."""
    comparisons: dict[int, list[Comparison]] = {n: [] for n in sizes}
    # Matrices this small are slower on several threads.
    with one_blas_thread():
        for n in comparisons:
            for draw in range(n_draws):
                data = draw_data(n, seed + draw)
                comparisons[n].append(Comparison(data, fit_gp(data), fit_lsgp(data)))
                progress(1)
    return comparisons


def print_table(comparisons: dict[int, list[Comparison]]) -> None:
    """Mean errors and costs by the number of training points, on the terminal."""
    n_draws = len(next(iter(comparisons.values())))
    over = f", mean over {n_draws} draws" if n_draws > 1 else ""
    print(f"Squared error against the Doppler function{over}; LSGP from {N_NEIGHBORS} neighbors\n")
    names = ["n", "GP", "LSGP", f"GP x<{FAST_PART}", f"LSGP x<{FAST_PART}"]
    names += ["LSGP better", "GP s", "LSGP s"]
    rows = []
    for n, draws in comparisons.items():
        errors = np.array([(*draw.errors(), *draw.errors(FAST_PART)) for draw in draws])
        seconds = np.array([(draw.gp.seconds, draw.lsgp.seconds) for draw in draws])
        n_better = np.sum(errors[:, 1] < errors[:, 0])
        shown = [f"{error:.4f}" for error in errors.mean(axis=0)]
        times = [f"{mean:.2f}" for mean in seconds.mean(axis=0)]
        rows.append([str(n), *shown, f"{n_better} of {n_draws}", *times])
    write_table(names, rows)


def plot(comparisons: dict[int, list[Comparison]], output: Path) -> None:
    """Draw the first draw of every size: the GP on the left, the LSGP on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.legend_handler import HandlerTuple

    # Without pyplot, so that neither a display nor the user's settings matter.
    figure = Figure(figsize=(10, 1.3 + 2.1 * len(comparisons)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(comparisons), 2, sharex=True, sharey=True, squeeze=False)
    for row, (n, draws) in zip(axes, comparisons.items(), strict=True):
        first = draws[0]
        mse_gp, mse_lsgp = first.errors()
        _draw_panel(row[0], first.data, first.gp, mse_gp, GP_COLOR)
        _draw_panel(row[1], first.data, first.lsgp, mse_lsgp, LSGP_COLOR)
        row[0].set_ylabel(f"n = {n}", fontsize=11)
    # Chosen for the function, whose range is [-0.5, 0.5]: a wide band must not squeeze it.
    axes[0, 0].set(xlim=(0, 1), ylim=(-1.05, 1.05), yticks=(-1, -0.5, 0, 0.5, 1))
    axes[0, 0].set_title("Gaussian process", fontsize=12, fontweight="bold", loc="left")
    axes[0, 1].set_title("Locally smoothed GP", fontsize=12, fontweight="bold", loc="left")
    for axis in axes[-1]:
        axis.set_xlabel("x")
    gp, lsgp = (
        dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True)) for axis in axes[0]
    )
    both = {name: (gp[name], lsgp[name]) for name in ("95 % band", "mean")}
    legend: dict[str, Any] = lsgp | both
    handlers = {tuple: HandlerTuple(ndivide=None, pad=0.4)}
    style: dict[str, Any] = {"handler_map": handlers, "ncols": len(legend), "frameon": False}
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", **style)
    figure.savefig(output, dpi=110)


def _draw_panel(axis: Axes, data: Doppler, fit: Fit, mse: float, color: str) -> None:
    x = data.X_test[:, 0]
    axis.fill_between(x, fit.low, fit.high, color=color, alpha=0.18, linewidth=0, label="95 % band")
    axis.plot(data.X[:, 0], data.y, ".", color="0.45", markersize=3, label="data")
    axis.plot(x, data.y_test, color="black", linewidth=0.8, label="true function")
    axis.plot(x, fit.mean, color=color, linewidth=1.5, label="mean")
    at = axis.transAxes
    axis.text(0.985, 0.05, f"MSE {mse:.4f}", color=color, transform=at, ha="right", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=9)


def run_demo(options: argparse.Namespace, voice: Voice) -> None:
    output, sizes = Path(options.output), dict.fromkeys(options.sizes)
    if min(sizes) < FEWEST_POINTS:
        raise CommandError(f"--sizes: at least {FEWEST_POINTS} training points are needed.")
    if options.seed < 0:
        raise CommandError(f"--seed {options.seed} must not be negative.")
    if not options.no_plot and not output.absolute().parent.is_dir():
        raise CommandError(f"--output: there is no folder {output.absolute().parent}.")
    with voice.progress("Fitting", len(sizes) * options.draws) as progress:
        comparisons = compare(list(sizes), options.draws, options.seed, progress)
    print_table(comparisons)
    if not options.no_plot and find_spec("matplotlib") is None:
        print("\nNo picture without matplotlib: install it with pip install 'lsgp[plot]'.")
    elif not options.no_plot:
        plot(comparisons, output)
        print(f"\nPicture: {output}")
