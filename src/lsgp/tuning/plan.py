# SPDX-License-Identifier: BSD-3-Clause
"""How hard tuning tries: every constant of it, each with what set it.

Measured on the six tables of `benchmarks/accuracy.py`, on splits from 10 on, unless a comment says
otherwise. Losses are leave-one-out losses of the compared points.
"""

from __future__ import annotations

from typing import NamedTuple

# -- points ------------------------------------------------------------------------------------

#: Training points on which candidates are compared: the loss of the protein table then has a
#: standard error of 1 %, a tenth of what the best and the worst kernel differ by.
N_COMPARED = 3000
#: The same for an objective that only the reference backend computes: a millisecond a point.
N_COMPARED_SLOWLY = 500
#: Training points on which other transforms of single inputs are tried.
N_MIXED = 1000
#: Training points on which exact GPs are tried, before one is made of all rows: a tenth of a
#: second each. Which candidate suits best was the same on all rows (kin8nm, concrete).
N_TRIED = 1500
#: Targets of a neighborhood of m rows, times m, in one optimization: a solve costs m³, and the
#: larger the neighborhood, the fewer targets there is time for,
TARGETS_TIMES_NEIGHBORS = 64_000
#: but with fewer than these their noise is what is optimized.
FEWEST_TARGETS = 128

# -- neighborhoods -----------------------------------------------------------------------------

#: Neighborhood in which candidates are ranked: powerplant and protein gain nothing beyond.
FIRST_N_NEIGHBORS = 64
#: A query in a gap needs many to see round its rim (satellite: RMSE 1.486 with 64, 1.438 with 256).
N_NEIGHBORS_IN_GAPS = 256
#: The largest neighborhood that is tried for more accuracy: 6 ms a prediction.
LAST_N_NEIGHBORS = 512

# -- coarse neighborhoods ------------------------------------------------------------------------

#: There must be so many times as many rows as neighbors: of fewer, few are far.
FEWEST_FOR_COARSE = 16
#: How many times as many rows units stand for, at least about: with fewer, more units do as well.
COARSE_FACTORS = (4, 16, 64, 256)
#: Which of them are tried first, and the others only if one is better than rows alone.
FIRST_COARSE_FACTORS = (4, 16)
#: Rows of the nodes that are predicted in tuning instead of rows, where these are mostly noise.
#: With n = 100,000 and noise of twice the signal, 2,000 rows led to errors from .051 to .130.
TARGET_NODE = 16
#: Fraction by which units must lower the loss, beside a standard error of the difference: prices
#: are the same, so that it need not be much.
WORTH_COARSE = 0.001

# -- candidates --------------------------------------------------------------------------------

#: Polished candidates that are then varied and enlarged: the third is seldom in the combination.
N_VARIED = 2
#: Where one radius serves all queries: by what it is varied, how many rows say which one to begin
#: with, and how many neighbors none of them may have.
RADIUS_STEP, N_ASKED, MOST_WITHIN = 2.0**0.5, 256, 512
#: Fraction by which more neighbors must lower the loss to be worth their cost,
WORTH_MORE_NEIGHBORS = 0.005
#: and the same of a log density, which has no zero, as a difference.
WORTH_MORE_NEIGHBORS_IN_DENSITY = 0.001
#: A loss higher by this fraction, or a log density lower by this much, may yet become the best.
PROMISING = 0.1
#: Fraction by which another transform of a single input must lower the loss: less is noise.
WORTH_MIXING = 0.002
#: The lengthscale that suits another transform may be a little shorter or longer.
MIXED_LENGTHSCALE_FACTORS = (1.0, 0.7, 1.4)

# -- exact GPs ---------------------------------------------------------------------------------

#: Up to this many rows, exact GPs have a share in what tuning combines in any case,
FEW_ROWS = 500
#: which is a half at this many rows: by the leave-one-out scores alone it would be too small
#: (n = 30: CRPS .911 of an exact GP's with it; n = 400: .980, whatever it is).
N_EVEN = 100
#: Up to this many rows, an exact GP is tuned by the evidence too: its n³ is then a second or two.
MOST_FOR_EVIDENCE = 2000
#: Matrices of all rows that the evidence and its gradient take at a time.
N_MATRICES = 8
#: Steps for every exact GP, and more of them for the likeliest, which are averaged.
FIRST_EVIDENCE_ITERATIONS = 20
LAST_EVIDENCE_ITERATIONS = 30
N_AVERAGED = 4
#: Less likely ones, relative to the likeliest, are not worth their time.
SMALLEST_ODDS = 0.02
#: Variance of an exact GP's constant, relative to that of the signal. Its slope is centered at the
#: mean of the rows and that of a local model at the query: with a flat constant it is the same.
FLAT = 50.0

# -- very few rows: hyperparameters are integrated out ------------------------------------------
# Set on 20 draws each of sin, Friedman and linear functions with noise of 0, .1 and .5 of the
# signal; n = 5 to 40.

#: The share of the integrated GPs is about a half at this many rows,
N_INTEGRATED_HALF = 80
#: and nothing from these on: intervals of 90 % cover .91 there without them.
N_INTEGRATED_LAST = 160
#: A share of all others below this is nothing: they are not worth their time.
NEGLIGIBLE_SHARE = 0.01
#: Exact GPs that stand for the posterior (CRPS at n = 12: 8 of them .2746, 16 .2701, 64 .2715).
N_MEMBERS = 16
#: Slices after each tempering step, and after the last: more of them changed nothing.
N_MOVES, N_LAST_MOVES = 2, 4
#: Degrees of freedom of the prior of the signal variance around the variance of the targets.
#: These are centered at their own mean, which costs one: this is 2 less 1. (.3 to 2 differ by 3 %
#: in CRPS.)
INTEGRATED_SCALE_DOF = 1.0
#: What few rows can tell apart, at best: other kernels and transforms changed nothing, while
#: Yeo-Johnson halves the CRPS of functions of logarithms (n = 20: .180 to .098).
INTEGRATED_KERNELS = frozenset({"matern32", "matern52", "rbf"})
INTEGRATED_TRANSFORMS = frozenset({"standardize", "yeo-johnson"})
#: Rows at which another transform than standardizing is half as likely as that.
N_TRANSFORM = 20
#: Pairs of rows, times inputs, beyond which integrating would take longer than all the rest:
#: 100 inputs of 160 rows are five seconds.
MOST_INTEGRATED_PAIRS = 2_500_000

# -- scales ------------------------------------------------------------------------------------

#: Largest log signal variance that calibration sets, beyond that of the descent: means tuned by
#: squares fix the ratios of variances alone, and where the noise ended at e⁻¹⁶ of the signal, the
#: signal is e¹⁶ times the noise (with e⁶ at most, intervals of 90 % covered .18).
LARGEST_CALIBRATED_SIGNAL = 40.0

# -- classes -----------------------------------------------------------------------------------
# Measured on the tables of `benchmarks/classification.py`, log loss on splits from 10 on.

#: Columns that one-hot targets of many classes are projected to where models are optimized: the
#: squared error of random combinations of classes with signs is, on average, that of all classes,
N_PROJECTED = 8
#: from this many columns on: by their operations, 26 columns of 64 rows cost twice the factor.
MOST_COLUMNS = 12
#: Up to this many rows, logistic regression is a member too (pima .486 to .481, mean of 3 splits;
#: spambase, of 4,000 rows, .1438 to .1446),
MOST_FOR_LINEAR = 2000
#: with each of these ridges,
RIDGES = (1.0, 10.0, 100.0)
#: judged on so many folds that it has not seen.
N_FOLDS = 10
#: Share of the class prior in its probabilities: 1 in 1000 is the surest it can be.
LINEAR_PRIOR_SHARE = 1e-3

#: Up to this many rows, and so many classes, GP classification by Laplace's approximation has a
#: share, in these kernels,
MOST_FOR_LAPLACE, MOST_CLASSES_FOR_LAPLACE = 1000, 10
LAPLACE_KERNELS = ("matern32", "rbf")
#: with the lengthscales of a regression times these, and log odds of these variances,
LAPLACE_STRETCHES, LAPLACE_AMPLITUDES = (1.0, 1.6, 2.5), (0.5, 1.5, 5.0, 15.0)
#: beside that of their constant.
LAPLACE_CONSTANT = 3.0
#: Of the pool. Means of 4 splits of pima, and of 2 each of 150 and 600 rows of phoneme, magic and
#: spambase: without .464 and .383, half .459 and .350, .7 .457 and .349, alone .456 and .361; of
#: satimage, of six classes: without .491, half .455, .7 .478.
LAPLACE_SHARE = 0.55

#: Up to this many rows, tuning goes twice, with tuned and compared rows exchanged, and both pools
#: are averaged: on pima, two splits of the same rows differ by up to .06 in log loss. Means of
#: splits 10 to 13: spambase .1367 to .1354, satimage (two) .203 to .194, phoneme (three) .189 to
#: .188; of magic, with 17,000 rows, .2751 to .2696, but for 170 seconds instead of 40.
MOST_FOR_EXCHANGE = 6000

#: Normal priors of a link's (log a, log e0, log e1), as strong as one row: a softmax of logarithms,
#: with a width of a few percent.
LINK_CENTER = (0.0, -3.0, -2.3)
LINK_SPREAD = (1.5, 2.0, 2.0)
#: Where the logarithm of the class prior's share starts.
LINK_START_PRIOR_SHARE = -6.9
#: Each bias is held to 0 by half a row.
BIAS_PRIOR = 0.5
#: Bounds of log a, log e0, log e1 and log λ, and of the biases. λ: at most a third, at least 6e-6.
LINK_BOUNDS = ((-3.0, 4.0), (-6.0, 4.0), (-8.0, 5.0), (-12.0, -1.0))
BIAS_BOUND = 10.0
#: Iterations of L-BFGS-B in which a link is fitted.
LINK_ITERATIONS = 200

# -- values ------------------------------------------------------------------------------------

#: Loss of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_LOSS = 1e6
#: The same of an evidence, which is a sum over all rows rather than a mean.
BAD_EVIDENCE = 1e10

# -- breadth -----------------------------------------------------------------------------------


class Breadth(NamedTuple):
    """How many kinds of candidates are tried."""

    kernels: tuple[str, ...] | None = None  # None: all that the settings leave open
    most_polished: int = 1000
    varies_scale: bool = True
    mixes_transforms: bool = True


ALL_KINDS = Breadth()
#: Of classes. With all kernels, a transform for each input, and candidates compared on rows that
#: they were tuned on, spambase took four times as long, and .1584 instead of .1443: which of these
#: it was has not been measured one by one. The width of the link was made for the local scale.
OF_CLASSES = Breadth(("matern12", "matern32"), 2, varies_scale=False, mixes_transforms=False)

# -- efforts -----------------------------------------------------------------------------------


class Effort(NamedTuple):
    """How hard one optimization tries."""

    n_targets: int
    n_rounds: int
    n_iterations: int

    @property
    def work(self) -> int:
        """Local solves, roughly: the unit of the progress that is reported."""
        return self.n_targets * self.n_rounds * self.n_iterations


class Efforts(NamedTuple):
    """How hard all of them try."""

    ranking: Effort
    polishing: Effort
    n_polished: int  # candidates that are polished after the ranking


def plan_efforts(n_tuning_points: int, n_eligible: int, is_slow: bool, is_in_gaps: bool) -> Efforts:
    """By how many points there are to tune on, and how fast they can be solved.

    Single runs of L-BFGS stop in poor optima (protein with 32 neighbors: MSE 16.5 instead of 10.5);
    a second round on another sample, in the metric that the first has found, cures it.
    """
    n = n_tuning_points
    if is_slow:
        # NumPy, query by query, 100 times slower: small samples.
        return Efforts(Effort(min(n, 50), 1, 10), Effort(min(n, 200), 2, 15), 6)
    # At most half of the rows at a time: optimizing further on all of few rows fits them.
    n = min(n, max(n_eligible // 2, 1))
    if is_in_gaps:
        # Four times the neighbors: a quarter of the points.
        return Efforts(Effort(min(n, 250), 1, 10), Effort(min(n, 1000), 2, 15), 6)
    ranking = Effort(min(n, 500), 2, 15)
    if n < n_tuning_points:
        # Scores of few rows are noisy, and cheap: more tries.
        return Efforts(ranking, Effort(n, 3, 15), 6)
    return Efforts(ranking, Effort(n, 2, 15), 4)


def first_effort(ranking: Effort) -> Effort:
    """How hard the model that is there at first is tuned: a tenth of a second, or two."""
    return Effort(min(ranking.n_targets, FEWEST_TARGETS), 1, 10)


def effort_of_larger(n_neighbors: int, n_tuning_points: int) -> Effort:
    """How hard a larger neighborhood is tuned, from the optimum of a smaller one on."""
    n_targets = max(FEWEST_TARGETS, TARGETS_TIMES_NEIGHBORS // n_neighbors)
    return Effort(min(n_tuning_points, n_targets), 1, 10)


def n_particles(n: int) -> int:
    """Fewer where each is dear, and the share small; a power of 2, for Sobol points.

    At n = 40, CRPS is .1730 with 64, .1697 with 128, .1695 with 256.
    """
    return 128 if n <= 64 else 64 if n <= 112 else 32


def transform_weight(n: int) -> float:
    """Prior weight of another input transform than standardizing, which has 1."""
    return n * n / (n * n + N_TRANSFORM**2)


def integrated_share(n: int) -> float:
    """The weight of integrated GPs in a combination; what is chosen has the rest."""

    def fading(k: float) -> float:
        return 1.0 / (1.0 + (k / N_INTEGRATED_HALF) ** 4)

    last = fading(N_INTEGRATED_LAST)
    share = max(0.0, (fading(n) - last) / (1.0 - last))
    return 1.0 if share > 1.0 - NEGLIGIBLE_SHARE else share


def exact_share(n: int) -> float:
    """The weight that exact GPs have in a combination, whatever their leave-one-out scores."""
    return 1.0 / (1.0 + (n / N_EVEN) ** 2)


#: Degrees between the angles of an anisotropy that are tried first: the loss has one period of 90
#: degrees, of which six points show where it is lowest.
ANGLE_STEP = 15.0
#: How often they are halved around the best. To 3.75 degrees: with a ratio of 1/3, an angle that is
#: off by 2 degrees lengthens no distance by more than a percent.
N_ANGLE_HALVINGS = 2
