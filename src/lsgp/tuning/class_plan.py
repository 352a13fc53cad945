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
