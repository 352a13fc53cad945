# SPDX-License-Identifier: BSD-3-Clause
"""How much is run: data sets, splits and the values that cross-validation tries."""

from __future__ import annotations

from dataclasses import dataclass

#: In the order of the paper's Table 1, with the names that it prints.
DATASET_LABELS = {
    "yacht": "Yacht",
    "boston": "Boston",
    "concrete": "Concrete",
    "kin8nm": "Kin8nm",
    "powerplant": "Powerplant",
    "protein": "Protein",
}

#: What is predicted, with its unit.
TARGETS = {
    "yacht": "residuary resistance (no unit)",
    "boston": "median home value (1,000 $)",
    "concrete": "compressive strength (MPa)",
    "kin8nm": "distance of a robot arm's end (no unit)",
    "powerplant": "electrical output (MW)",
    "protein": "deviation of a structure (Å)",
}

#: In the order of the paper's Table 2; the last is ours.
METHOD_LABELS = {
    "lsgpr-hilbert": "LSGPR Hilbert",
    "lsgpr-epanechnikov": "LSGPR Epanechnikov",
    "gp": "GP",
    "deep-gp": "DeepGP",
    "knn": "KNN",
    "default": "lsgp, default",
}

#: The method that the paper does not have.
OURS = "default"

#: The test rows of as many splits were looked at while the default was designed.
N_SEEN_SPLITS = 5


@dataclass(frozen=True)
class Protocol:
    """The settings of a run. Results of different protocols are never mixed, by its name.

    Attributes
    ----------
    name : str
    datasets : tuple of str
    n_splits : int
        Split k is ``reproduction.datasets.split(n, seed=k)``.
    noise_variances, lengthscales, n_neighbors : tuples of numbers
        What the cross-validation of LSGPR tries (`reproduction.search`); noise relative to the
        signal variance, lengthscales in the units of the scaled inputs times the square root of
        their number.
    knn_neighbors : tuple of int
    n_validation : int
        Rows of each fold that cross-validation of LSGPR predicts, at most, from all rows of the
        other folds.
    n_gp_tuning : tuple of int
        Training rows from which the GP's hyperparameters are tuned, at most: first from the
        fewest, then from more of them.
    n_gp_rows : int
        Training rows on which the GP is then conditioned, at most.
    gp_restarts : int
        Of tuning from the fewest rows.
    deep_gp_steps : int
        Of the stochastic optimization of the Deep GP.
    sizes : tuple of int
        Training points of Figure 3.
    expected_neighbors : tuple of int
        Bandwidths that Figure 3 tries, as the number of points that they reach on average.
    n_draws : int
        Draws of the data of Figure 3; the first is drawn.
    """

    name: str
    datasets: tuple[str, ...] = tuple(DATASET_LABELS)
    n_splits: int = 10
    noise_variances: tuple[float, ...] = tuple(10.0**k for k in range(-9, 1))
    lengthscales: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
    n_neighbors: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    knn_neighbors: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
    n_validation: int = 500
    n_gp_tuning: tuple[int, ...] = (1000, 3000)
    n_gp_rows: int = 12000
    gp_restarts: int = 1
    deep_gp_steps: int = 6000
    sizes: tuple[int, ...] = (400, 200, 100)
    expected_neighbors: tuple[int, ...] = (5, 6, 7, 8, 10, 12, 16, 24)
    n_draws: int = 5


FULL = Protocol("full")

#: For a first look, and for continuous integration.
QUICK = Protocol(
    "quick",
    datasets=("yacht", "boston"),
    n_splits=2,
    noise_variances=(1e-5, 1e-3, 1e-1),
    lengthscales=(0.2, 0.4, 0.8),
    n_neighbors=(32, 128),
    n_validation=200,
    n_gp_tuning=(1000,),
    gp_restarts=0,
    deep_gp_steps=2000,
    expected_neighbors=(6, 8, 12),
    n_draws=1,
)
