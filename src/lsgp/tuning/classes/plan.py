# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of tuning for classes, each with its reason."""

from __future__ import annotations

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

#: Where rows are few, up to so many classes, GP classification by Laplace's approximation has a
#: share, in these kernels,
MOST_CLASSES_FOR_LAPLACE = 10
LAPLACE_KERNELS = ("matern32", "rbf")
#: with the lengthscales of a regression times these, and log odds of these variances,
LAPLACE_STRETCHES, LAPLACE_AMPLITUDES = (1.0, 1.6, 2.5), (0.5, 1.5, 5.0, 15.0)
#: beside that of their constant.
LAPLACE_CONSTANT = 3.0
#: Of the pool. Means of 4 splits of pima, and of 2 each of 150 and 600 rows of phoneme, magic and
#: spambase: without .464 and .383, half .459 and .350, .7 .457 and .349, alone .456 and .361; of
#: satimage, of six classes: without .491, half .455, .7 .478.
LAPLACE_SHARE = 0.55

# Very few rows: GP classification is integrated over its hyperparameters. Set on 8 functions of 2
# to 10 inputs and 2 to 4 classes, and on subsets of 20 to 200 rows of the tables. Log loss of the
# functions at n = 6, 12, 20, 30, 50: by the evidence .928, .943, .917, .850, .796; integrated .898,
# .928, .913, .862, .808; of the other models 1.47, 1.49, 1.07, .95, .83.

#: Its share is about a half at this many rows, and nothing from the second on. The log loss is the
#: least with a share of .2 (20 rows) and .4 (50) on the tables, of 1 (12), .75 (20), .4 (30) and .2
#: (50) on the functions, and of 1 up to 30 rows on noise.
N_INTEGRATED_LABELS_HALF, N_INTEGRATED_LABELS_LAST = 45, 100

#: Median and spread of the log odds' variance. Log loss of noise of two classes, at n = 6, 12, 30,
#: less that of the class prior: .013, .017, .019 with (2, 1), .007, .011, .018 with these; the mean
#: of all others is .740 with both.
INTEGRATED_AMPLITUDE, INTEGRATED_AMPLITUDE_SPREAD = 1.0, 1.5
#: Variance of their constant: 3 raises the log loss of 6 rows by 2 %.
INTEGRATED_CONSTANT = 1.5
#: The class prior has k / (n + k) of the members: that of noise falls to .001, .006, .015, and all
#: others rise to .741.
INTEGRATED_PRIOR_ROWS = 2.0

#: The class prior has at least k / (n + k) of a link that was fitted to n rows, less what that is
#: at the second number, and nothing from there on: 500 rows are two halves of 250. Log loss of the
#: models but GP classification at 6, 12, 30, 100 rows: 1.47, 1.49, .95, .82 without, .94, 1.01,
#: .88, .81 with it.
FEW_FOR_LINK, MANY_FOR_LINK = 5.0, 250

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


def n_draws_of_labels(n: int) -> int:
    """Hyperparameters that integrated GP classification draws from their prior: a power of 2.

    A label is a bit at most, so few labels leave many of them likely: of 256, 210 are effective at
    n = 6, 110 at 30, 40 at 100, where a draw takes 3 ms for each class.
    """
    return 256 if n <= 64 else 128


def least_prior_share(n: int) -> float:
    """The least λ of [C3] of a link that was fitted to n rows."""

    def share(k: int) -> float:
        return FEW_FOR_LINK / (k + FEW_FOR_LINK)

    return max(0.0, share(n) - share(MANY_FOR_LINK))
